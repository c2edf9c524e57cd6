# frozen_string_literal: true

RSpec.describe "The plugin of puma" do
  before do
    require "puma"
    require "puma/configuration"
    require "puma/plugin"
    require "puma/events"
    require "puma/log_writer" if Integer(Puma::Const::VERSION[/\A\d+/]) > 5
  rescue LoadError
    skip "puma is not installed (the package puma, the gem puma)"
  end

  let(:plugin) do
    Puma::Plugins.find("memprof").new.tap { |found| allow(found).to receive(:require).with("memprof/agent") }
  end

  # What puma does between the file of its configuration and its workers.
  def configured(workers)
    config = Puma::Configuration.new({ config_files: ["-"] }) { |user| user.workers(workers) }
    config.respond_to?(:clamp) ? config.clamp : config.load
    plugin.start(Struct.new(:config, :options).new(config, config.options))
    config
  end

  def boot_worker(config, index)
    log = defined?(Puma::LogWriter) ? Puma::LogWriter.strings : Puma::Events.strings
    config.run_hooks(:before_worker_boot, index, log)
  end

  it "loads the agent in a process without workers" do
    expect(configured(0).options.all_of(:before_worker_boot)).to be_empty
    expect(plugin).to have_received(:require).once
  end

  it "loads the agent in workers, not in their master" do
    config = configured(2)
    expect(plugin).not_to have_received(:require)
    2.times { |index| boot_worker(config, index) }
    expect(plugin).to have_received(:require).twice
  end

  it "lets a process serve without an agent that cannot be loaded" do
    allow(plugin).to receive(:require).and_raise(LoadError, "no agent\nhere")
    expect { configured(0) }.to output("memprof: the agent is off: no agent\n").to_stderr
  end

  # A plugin with this method loses the first setting of the file that names it.
  it "has no method config" do
    expect(plugin).not_to respond_to(:config)
  end
end
