"""The base of the generated models."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value in a response. Members that a later version of the service adds are kept as well."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)
