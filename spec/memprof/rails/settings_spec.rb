# frozen_string_literal: true

require "memprof/rails/settings"

RSpec.describe Memprof::Rails::Settings do
  subject(:settings) { described_class.new }

  it "is off by default" do
    expect(settings).to have_attributes(enabled?: false, requests?: false, agent: {})
  end

  it "has the agent's settings" do
    settings.interval = 30
    settings[:limit] = "90%"
    expect(settings.agent).to eq(interval: 30, limit: "90%")
    expect(settings.interval).to eq(30)
  end

  it "refuses unknown names and invalid values" do
    expect { settings.intervall = 3 }.to raise_error(ArgumentError, /memprof\.intervall.*mean interval/)
    expect { settings.interval = "often" }.to raise_error(ArgumentError, /interval must be seconds/)
    expect { settings.web = "memprof" }.to raise_error(ArgumentError, /web must be a path/)
    expect { settings.enabled = "yes" }.to raise_error(ArgumentError, /enabled must be true or false/)
  end

  it "counts requests with the agent, or as told" do
    settings.enabled = true
    expect(settings).to be_requests
    settings.requests = false
    expect(settings).not_to be_requests
  end

  it "mounts pages in development, and elsewhere only with a permit" do
    expect(settings.web_path(development: true)).to eq("/memprof")
    expect(settings.web_path(development: false)).to be_nil
    settings.web = "/heap"
    expect(settings.web_path(development: false)).to be_nil
    settings.permit = ->(_env) { true }
    expect(settings.web_path(development: false)).to eq("/heap")
    settings.web = false
    expect(settings.web_path(development: true)).to be_nil
  end
end
