"""The sampler that the settings name."""

from reward.config import SamplerConfig
from reward.samplers import Sampler


def make_sampler(config: SamplerConfig) -> Sampler:
    """Builds the configured sampler; its heavy imports happen only here."""
    if config.kind == "openai":
        from reward.samplers.openai import OpenAISampler

        return OpenAISampler(config)
    if config.kind == "ray":
        from reward.samplers.live import RayEngineSampler

        return RayEngineSampler(config)
    from reward.samplers.local import LocalEngineSampler

    return LocalEngineSampler(config)
