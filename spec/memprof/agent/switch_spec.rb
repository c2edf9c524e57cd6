# frozen_string_literal: true

require "memprof/agent/switch"

RSpec.describe "The switch of the agent" do
  def on?(program, *arguments, agent: nil)
    env = { "MEMPROF_AGENT" => agent }.compact
    Memprof::Agent::Switch.on?(env, program: program, arguments: arguments)
  end

  it "is on in servers, workers and scripts" do
    ["puma", "puma: cluster worker 0: 1 [shop]", "/usr/bin/sidekiq", "app.rb", "-e", "unicorn"].each do |program|
      expect(program => on?(program)).to eq(program => true)
    end
    expect([on?("bin/rails", "server"), on?("bin/rails", "s"), on?("bin/rails", "runner")]).to all(be(true))
  end

  it "is off in consoles, generators, tasks and tests, unless asked" do
    programs = [["irb"], ["/usr/bin/rake", "db:migrate"], ["bin/console"], ["rspec"], ["spring app | shop"],
      ["bin/rails", "console"], ["bin/rails", "g", "model"], ["bin/rails"], ["rails", "db:migrate"]]
    programs.each do |program|
      found = [on?(*program), on?(*program, agent: "interval=3"), on?(*program, agent: "on,interval=3")]
      expect(program => found).to eq(program => [false, false, true])
    end
  end

  it "is on for a command of Rails that has taken its name from the arguments" do
    stub_const("Rails::Server", Class.new)
    expect(on?("bin/rails")).to be(true)
  end

  it "is off in Rails' console, however it was started" do
    stub_const("Rails::Console", Class.new)
    expect(on?("bin/shell")).to be(false)
  end

  it "is always off with MEMPROF_AGENT=off, and in programs that start others" do
    ["off", "OFF", "0", "on,off", "false, interval=3"].each { |text| expect(on?("puma", agent: text)).to be(false) }
    %w[memprof bundle /usr/bin/gem].each { |program| expect(on?(program, agent: "on")).to be(false) }
  end

  it "takes empty text for nothing" do
    expect([on?("puma", agent: ""), on?("irb", agent: " , ")]).to eq([true, false])
  end
end
