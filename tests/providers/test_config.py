"""`providers.yaml`: what it may say, and what is refused, with its place."""

from __future__ import annotations

import pickle
from base64 import b64encode
from decimal import Decimal
from pathlib import Path

import pytest

from windlass.core.errors import BadSetting, NotFound
from windlass.providers.config import Hidden, Payment, ProviderConfig, read_config
from windlass.providers.price import Price
from windlass.providers.registry import Registry

SECRET = "whsec_" + "ZmFrZS1wcm92aWRlci1zZWNyZXQtZm9yLXRlc3Rz"
ENVIRON = {"FAL_KEY": " the key ", "SECRETS": f"{SECRET}, ,{SECRET}"}
FULL = """
providers:
  fal:
    adapter: fal
    base_url: https://queue.fal.run/
    credential_env: FAL_KEY
    concurrency: 4
    rate: 2.5
    timeout: 45s
    wait: 2h
    poll: [1s, 2m]
    webhook: {profile: standard, secret_env: SECRETS, tolerance: 60s}
    payment: PREPAID_POOL
    prices:
      fal-ai/flux: {call: 0.1, second: "0.00015"}
      "*": {tokens_in: 2, tokens_out: 8, item: 0.04}
    estimate: 0.07
    options: {honours_keys: true}
"""


def one(text: str) -> ProviderConfig:
    return read_config(text, ENVIRON)["fal"]


def test_everything_that_can_be_said() -> None:
    config = one(FULL)
    assert (config.base_url, config.concurrency, config.rate) == ("https://queue.fal.run", 4, 2.5)
    assert (config.timeout_s, config.wait_s, config.poll_s) == (45.0, 7200.0, (1.0, 120.0))
    assert config.credential == Hidden("the key")
    assert config.webhook is not None
    assert (config.webhook.profile, config.webhook.tolerance_s) == ("standard", 60.0)
    assert [secret.reveal() for secret in config.webhook.secrets] == [SECRET, SECRET]
    assert config.payment is Payment.PREPAID_POOL
    assert config.prices["fal-ai/flux"] == Price(call=Decimal("0.1"), second=Decimal("0.00015"))
    assert config.prices["*"].tokens_out == Decimal(8)
    assert config.estimate == Decimal("0.07")
    assert config.options == {"honours_keys": True}


@pytest.mark.covers("SCR-77")
def test_what_is_not_said_is_as_documented() -> None:
    config = one("providers: {fal: {adapter: fal}}")
    assert (config.concurrency, config.rate, config.timeout_s, config.wait_s) == (1, 10.0, 30.0, 3600.0)
    assert config.poll_s == (30.0, 60.0, 120.0)
    assert (config.webhook, config.payment, config.credential) == (None, Payment.ON_DEMAND, None)


def test_no_providers_is_no_mistake() -> None:
    assert read_config("", {}) == {}
    assert read_config("providers:", {}) == {}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{}", "providers.fal: has no `adapter` (line 1)"),
        ("[1]", "providers.fal: must be a map"),
        ("{adapter: fal, concurency: 2}", "providers.fal.concurency: there is no such setting"),
        ("{adapter: 7}", "providers.fal.adapter: 7 is not text"),
        ("{adapter: fal, concurrency: 0}", "providers.fal.concurrency: 0 is not a whole number"),
        ("{adapter: fal, concurrency: 1.5}", "providers.fal.concurrency: 1.5 is not a whole number"),
        ("{adapter: fal, concurrency: true}", "providers.fal.concurrency: True is not a whole number"),
        ("{adapter: fal, rate: 0}", "providers.fal.rate: 0 is not a number"),
        ("{adapter: fal, answer_max_bytes: 7}", "providers.fal.answer_max_bytes: 7 is not a whole number of bytes"),
        ("{adapter: fal, rate: fast}", "providers.fal.rate: 'fast' is not a number"),
        ("{adapter: fal, wait: soon}", "providers.fal.wait: 'soon' is not a length of time"),
        ("{adapter: fal, wait: 0}", "providers.fal.wait: 0 is shorter than"),
        ("{adapter: fal, poll: []}", "providers.fal.poll: must be 1 to 20"),
        ("{adapter: fal, poll: [1s, 0s]}", "providers.fal.poll[1]: '0s' is shorter than"),
        ("{adapter: fal, base_url: 'ftp://x'}", "providers.fal.base_url: must be an http or https address"),
        ("{adapter: fal, base_url: 'https://u:p@x'}", "providers.fal.base_url: must have no user"),
        ("{adapter: fal, base_url: 'https://x/?k=v'}", "providers.fal.base_url: must have no user, query"),
        ("{adapter: fal, base_url: 'https://x:99999'}", "providers.fal.base_url: cannot be read"),
        ("{adapter: fal, credential_env: NOT_SET}", "providers.fal.credential_env: the variable NOT_SET is not set"),
        ("{adapter: fal, payment: CASH}", "providers.fal.payment: 'CASH' is not a way to pay"),
        ("{adapter: fal, prices: {m: {pixel: 1}}}", "providers.fal.prices.m.pixel: there is no such setting"),
        ("{adapter: fal, prices: {m: {call: -1}}}", "providers.fal.prices.m.call: -1 is not an amount"),
        ("{adapter: fal, estimate: .nan}", "providers.fal.estimate: '.nan' is not an amount"),
        ("{adapter: fal, webhook: {secrets: x}}", "providers.fal.webhook.secrets: there is no such setting"),
        ("{adapter: fal, webhook: {tolerance: 2h}}", "providers.fal.webhook.tolerance: is longer than"),
        ("{adapter: fal, options: [a]}", "providers.fal.options: must be a map"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(entry: str, told: str) -> None:
    with pytest.raises(BadSetting) as caught:
        one(f"providers: {{fal: {entry}}}")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "providers: {Fal: {adapter: fal}}",
        "providers: {'a b': {adapter: fal}}",
        "provider: {}",
        "[1]",
        "a: [",
        "a: 1\na: 2",
    ],
)
def test_a_file_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        read_config(text, ENVIRON)


def test_a_line_is_named() -> None:
    with pytest.raises(BadSetting, match=r"providers\.fal\.rate: .* \(line 4\)"):
        one("providers:\n  fal:\n    adapter: fal\n    rate: fast\n")


def test_a_credential_written_in_place_of_its_variable_is_not_repeated() -> None:
    with pytest.raises(BadSetting) as caught:
        one("providers: {fal: {adapter: fal, credential_env: 'sk-live 1234567890'}}")
    assert "1234567890" not in str(caught.value)


def test_whoever_only_looks_needs_no_secrets() -> None:
    config = read_config("providers: {fal: {adapter: fal, credential_env: NOT_SET}}", {}, needs_secrets=False)["fal"]
    assert config.credential is None and config.credential_env == "NOT_SET"


def test_a_secret_shows_itself_to_nobody() -> None:
    config = one(FULL)
    for text in (repr(config), str(config), f"{config.credential}", f"{config.webhook!r}"):
        assert "the key" not in text and SECRET not in text
    with pytest.raises(TypeError):
        pickle.dumps(config.credential)
    assert hash(Hidden("a")) == hash(Hidden("b"))  # a hash would be a way to guess


# The registry


async def test_providers_are_found_by_name(tmp_path: Path) -> None:
    path = tmp_path / "providers.yaml"
    path.write_text(FULL)
    registry = Registry.load(path, ENVIRON)
    assert [provider.name for provider in registry] == ["fal"] and len(registry) == 1
    assert "fal" in registry and "other" not in registry
    assert registry["fal"].adapter.config is registry["fal"].config
    with pytest.raises(NotFound, match="Configured: fal"):
        registry["other"]
    await registry.close()


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="cannot be read: No such file"):
        Registry.load(tmp_path / "none.yaml", {})


def test_two_providers_do_not_share_a_secret() -> None:
    entry = "{{adapter: http, base_url: 'http://x', webhook: {{profile: standard, secret_env: {}}}}}"
    text = f"providers:\n  one: {entry.format('ONE')}\n  two: {entry.format('TWO')}\n"
    other = f"whsec_{b64encode(bytes(range(32))).decode()}"
    assert len(Registry.read(text, {"ONE": SECRET, "TWO": other})) == 2
    for shared in (SECRET, f"{other},{SECRET}"):
        with pytest.raises(BadSetting, match="webhook secret of provider one too") as caught:
            Registry.read(text, {"ONE": f"{SECRET},{SECRET}", "TWO": shared})
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{adapter: 'json:loads'}", "json:loads is not a ProviderAdapter"),
        ("{adapter: 'windlass.providers.adapter:ProviderAdapter'}", "does not have: cancel_job, get_job_status"),
        ("{adapter: 'no.such:Thing'}", "no.such:Thing cannot be imported: No module named 'no'"),
        ("{adapter: http}", "providers.fal: has no `base_url`"),
        ("{adapter: fal, webhook: {profile: rot13}}", "providers.fal.webhook.profile: there is no profile 'rot13'"),
        ("{adapter: fal, webhook: {profile: github}}", "providers.fal.webhook: has no `secret_env`"),
        (
            "{adapter: replicate, webhook: {secret_env: FAL_KEY}}",
            "providers.fal.webhook.secret_env: a webhook's secret",
        ),
        ("{adapter: fal, options: {honors_keys: true}}", "options.honors_keys: there is no such option"),
        ("{adapter: fal, options: {honours_keys: 1}}", "options.honours_keys: 1 is no bool"),
        ("{adapter: fal, options: {priority: high}}", "options.priority: 'high' is neither"),
        ("{adapter: replicate, options: {events: [end]}}", "options.events: there is no 'end'"),
        ("{adapter: openai, options: {endpoint: song}}", "options.endpoint: there is no 'song'"),
        ("{adapter: openai, options: {batch_share: half}}", "options.batch_share: it is not a number"),
        (
            "{adapter: http, base_url: 'http://x', options: {status: GET /jobs}}",
            "options.status: the path must contain {id}",
        ),
        ("{adapter: http, base_url: 'http://x', options: {submit: /jobs}}", "options.submit: '/jobs' is not a method"),
        ("{adapter: http, base_url: 'http://x', options: {fields: {ident: x}}}", "options.fields.ident: there is no"),
        ("{adapter: http, base_url: 'http://x', options: {statuses: {a: DONE}}}", "options.statuses.a: 'DONE' is not"),
        ("{adapter: http, base_url: 'http://x', options: {headers: {a: 1}}}", "options.headers.a: 1 is not text"),
    ],
)
def test_an_adapter_refuses_what_it_does_not_understand(entry: str, told: str) -> None:
    with pytest.raises(BadSetting) as caught:
        Registry.read(f"providers: {{fal: {entry}}}", ENVIRON)
    assert told in str(caught.value)
