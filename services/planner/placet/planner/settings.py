"""Settings of the planner."""

from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from placet.planner.scripted import load_scripts
from placet.service.settings import DatabaseSettings

SHIPPED_SCRIPT = str(files("placet.planner") / "scripts" / "demo.yaml")


class Settings(DatabaseSettings):
    """The planner's own settings."""

    service: ClassVar[str] = "planner"
    script_file: str = Field(SHIPPED_SCRIPT, description="What the scripted model says")
    model_attempts: int = Field(3, ge=1, le=10, description="How often a step asks the model before the turn fails")
    model_seconds: float = Field(120, gt=0, description="How long the model may take for one answer")

    @field_validator("script_file")
    @classmethod
    def holds_scripts(cls, path: str) -> str:
        """A script that cannot be played is found before anything starts."""
        load_scripts(Path(path))
        return path
