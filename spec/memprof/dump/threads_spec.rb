# frozen_string_literal: true

require "memprof/dump"

RSpec.describe Memprof::Dump::Threads do
  def facts(values: :full)
    described_class.facts(Memprof::Dump::Options.new(values: values))
  end

  def thread
    ready = Thread::Queue.new
    thread = Thread.new do
      yield if block_given?
      ready << true
      Thread.stop
    end
    ready.pop
    sleep(0.001) until thread.stop?
    thread
  end

  after { Thread.list.each { |thread| thread.kill.join if thread[:memprof_spec] } }

  it "says what each thread is and does" do
    other = thread { Thread.current[:memprof_spec] = 1 }
    other.name = "worker"
    other.priority = 2
    other.thread_variable_set(:size, 12)
    all = facts
    mine = JSON.parse(all.fetch(Thread.current))
    theirs = JSON.parse(all.fetch(other))
    expect(mine).to include("status" => "run", "current" => true, "priority" => 0)
    expect(mine["main"]).to eq(Thread.current == Thread.main ? true : nil)
    expect(mine["backtrace"].first).to start_with("#{__FILE__}:")
    expect(theirs).to include("status" => "sleep", "name" => "worker", "priority" => 2,
      "variables" => { ":memprof_spec" => 1 }, "thread_variables" => { ":size" => 12 })
    expect(theirs.keys & %w[main current]).to be_empty
    expect(theirs["group"]).to match(/\A0x\h+\z/)
    expect(theirs["native_thread_id"]).to eq(other.native_thread_id)
    expect(theirs["backtrace"]).to include(a_string_including("#{__FILE__}:"))
  end

  it "shows a hundred frames at most" do
    deep = ->(depth) { depth.zero? ? facts : deep.call(depth - 1) }
    expect(JSON.parse(deep.call(300).fetch(Thread.current))["backtrace"].size).to be_between(50, 100)
  end

  it "minds no hostile names and classes" do
    hostile = Class.new(Thread) do
      %i[status name keys [] backtrace priority group hash ==].each do |name|
        define_method(name) { |*| raise "asked" }
      end
    end
    ready = Thread::Queue.new
    other = hostile.new do
      Thread.current.thread_variable_set("\xFF\n".b, BasicObject.new)
      ready << true
      Thread.stop
    end
    ready.pop
    other.name = "caf\xE9"
    theirs = JSON.parse(facts.fetch(other))
    expect(theirs["name"]).to eq("caf\\xE9")
    expect(theirs["thread_variables"]).to match(":\\xFF\n" => /\A0x\h+\z/)
  ensure
    other&.kill
  end

  it "hides numbers and symbols where contents are not wanted" do
    other = thread { Thread.current[:memprof_spec] = :secret }
    expect(JSON.parse(facts(values: :hash).fetch(other))["variables"]).to eq(":memprof_spec" => "(hidden)")
  end

  it "bears threads that come and go" do
    stop = false
    churn = Thread.new { Thread.new { nil } until stop }
    50.times { facts.each_value { |json| JSON.parse(json) } }
  ensure
    stop = true
    churn.join
  end
end
