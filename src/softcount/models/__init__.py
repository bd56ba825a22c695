"""Models: how rows become counts. Importing this package fills the registry of models that files can hold."""

from softcount.models import star as star
