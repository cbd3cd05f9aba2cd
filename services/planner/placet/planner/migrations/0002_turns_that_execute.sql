-- A turn executes while its calls wait, whatever they wait for; which of them wait for a person stands in tool_call. The turn's
-- own awaiting_approval, which 0001 allows, was not kept true when another call ended meanwhile, and nothing makes it any more.
update turn set state = 'executing' where state = 'awaiting_approval';
