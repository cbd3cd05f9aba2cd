"""Permission: policy, cards, decisions. The owner of the approvals database; it runs nothing."""
