"""The samplers' settings: one server or several, named once and usable."""

from __future__ import annotations

from typing import Any

import pytest

from reward.config import OpenAISamplerConfig

MODEL = "tiny"


@pytest.mark.parametrize(
    "urls",
    [
        {"base_url": "http://h:1/v1"},
        {"base_urls": "http://h:1/v1/"},
        {"base_urls": ["http://h:1/v1"]},
    ],
)
def test_one_server_is_a_list_of_one(urls: dict[str, Any]) -> None:
    config = OpenAISamplerConfig(model=MODEL, **urls)
    assert config.base_urls == ("http://h:1/v1",)
    assert OpenAISamplerConfig.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        ({}, "base_urls"),
        ({"base_urls": []}, "at least 1"),
        ({"base_url": "http://h/v1", "base_urls": ["http://i/v1"]}, r"base_url\n  Extra inputs"),
        ({"base_url": "h:8000/v1"}, "write http://host:port/v1"),
        ({"base_urls": ["http://h/v1", "http://h/v1/"]}, "names a server twice"),
    ],
)
def test_unusable_addresses_are_refused(urls: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OpenAISamplerConfig(model=MODEL, **urls)
