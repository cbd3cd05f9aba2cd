"""Documents that a service is set up with: YAML files in which every key stands once."""

from pathlib import Path
from typing import Any

import yaml


class BadDocument(ValueError):
    """A document that cannot be used; the text names file and key."""


class _Once(yaml.SafeLoader):
    """Reads a key that stands twice as the mistake that it is: the second one must not silently win (B13, B29)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are all different. Raises yaml.YAMLError."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if repeated := {key for key in keys if keys.count(key) > 1}:
            raise yaml.YAMLError(f"the key {min(repeated)!r} stands twice{node.start_mark}")
        return super().construct_mapping(node, deep)


def read_document(path: Path) -> Any:
    """What a YAML file holds. Raises BadDocument when it cannot be read, or has a key twice."""
    try:
        with path.open(encoding="utf-8") as text:  # of a file, unlike of a string, the loader's errors show no piece
            return yaml.load(text, _Once)  # noqa: S506  a SafeLoader
    except (yaml.YAMLError, OSError, ValueError) as error:
        raise BadDocument(f"{path}: {' '.join(str(error).split())}") from error
