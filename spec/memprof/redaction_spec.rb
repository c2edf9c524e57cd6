# frozen_string_literal: true

require "memprof/redaction"

RSpec.describe Memprof::Redaction do
  it "takes out values of parameters that are named like secrets" do
    {
      "a=1&token=abc&b" => "a=1&token=[FILTERED]&b", "API_KEY=k=k" => "API_KEY=[FILTERED]",
      "user[password]=x;c=2" => "user[password]=[FILTERED];c=2", "page=token" => "page=token",
      "user%5Bpass%77ord%5D=x" => "user%5Bpass%77ord%5D=[FILTERED]", "api+key=1" => "api+key=1",
      "sig=1&csrf=2&id_jwt=3&signed=4" => "sig=[FILTERED]&csrf=[FILTERED]&id_jwt=[FILTERED]&signed=4",
      "" => "", "=1&&x=" => "=1&&x=", "%ff%=1" => "%ff%=1"
    }.each { |query, redacted| expect(described_class.query(query, {})).to eq(redacted) }
  end

  it "takes out what the Rails application filters" do
    env = { "action_dispatch.parameter_filter" => [:Iban, /\Apin\z/, "card.code", ->(_key, _value) {}] }
    expect(described_class.query("my_iban=1&pin=2&pinned=3&card%5Bcode%5D=4&code=5", env))
      .to eq("my_iban=[FILTERED]&pin=[FILTERED]&pinned=3&card%5Bcode%5D=[FILTERED]&code=5")
  end

  it "leaves paths as they are, and makes valid text of any bytes" do
    expect(described_class.uri("/token/1?token=1#t", {})).to eq("/token/1?token=[FILTERED]")
    expect(described_class.uri("/home", {})).to eq("/home")
    expect(described_class.uri("", {})).to eq("")
    expect(described_class.query("\xE4=\xFF".b, {})).to be_valid_encoding
  end
end
