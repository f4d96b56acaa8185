"""The answers of a server."""

from pydantic import BaseModel, Field


class Failure(BaseModel):
    error: str


class Health(BaseModel):
    status: str = "ok"


class Language(BaseModel):
    code: str
    name: str
    targets: list[str]


class Detection(BaseModel):
    confidence: float | None = Field(default=None, description="In per cent, if there was a choice.")
    language: str


class Translation(BaseModel):
    translatedText: str | list[str]
    detectedLanguage: Detection | list[Detection] | None = None
    alternatives: list[str] | None = None
    warnings: list[str] | None = Field(default=None, description="For example of missing placeholders.")


class TranslatedFileUrl(BaseModel):
    translatedFileUrl: str
    warnings: list[str] | None = None


class Sentence(BaseModel):
    source_text: str
    translation_text: str
    confidence: float | None = Field(default=None, description="Mean log-probability of its tokens, in nats.")


class Document(BaseModel):
    translation_text: str
    sentences: list[Sentence]
    segments: list[int] = Field(
        description="Number of sentences of each segment that the model translated as one input."
    )
    source: str = Field(description="Code of the source language.")
    target: str = Field(description="Code of the target language.")
    warnings: list[str]


class LanguageChoice(BaseModel):
    code: str
    name: str


class LanguageChoices(BaseModel):
    source: LanguageChoice
    target: LanguageChoice


class FrontendSettings(BaseModel):
    apiKeys: bool
    keyRequired: bool
    charLimit: int
    frontendTimeout: int = Field(description="Milliseconds that a page waits after a keystroke.")
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    language: LanguageChoices
