# frozen_string_literal: true

require "memprof"
require "memprof/rails/counting"

RSpec.describe Memprof::Rails::Counting do
  work = Memprof::Agent::Work

  before { @queries = described_class.instance_variable_get(:@queries) }

  after do
    described_class.instance_variable_set(:@queries, @queries)
    work.clear
  end

  def query = Thread.current[:__memprof_unit].query

  # As falcon runs requests: one waits while the other continues, on the same thread.
  it "counts the requests of fibers that take turns as their own, and their objects as unknown" do
    units = []
    fibers = { "A#show" => 1, "B#show" => 2 }.map do |name, queries|
      Fiber.new do
        described_class.around(:action, -> { name }) do
          2.times do
            queries.times { query }
            Fiber.yield
          end
          units << [name, Thread.current[:__memprof_unit].sql]
        end
      end
    end
    3.times { fibers.each(&:resume) }
    expect(units).to eq([["A#show", 2], ["B#show", 4]])
    expect(work.rows(:action).to_h { |row| [row.name, [row.count, row.objects]] })
      .to eq("A#show" => [1, nil], "B#show" => [1, nil])
    expect(Thread.current[:__memprof_unit]).to be_nil
  end

  it "knows the objects of requests of fibers that follow each other" do
    2.times do
      Fiber.new { described_class.around(:action, -> { "A#show" }) { Array.new(500) { Object.new } } }.resume
    end
    row = work.rows(:action).first
    expect([row.count, row.objects]).to match([2, be >= 1000])
  end

  it "knows the number of queries only where they are counted" do
    known = [true, nil].to_h do |counted|
      described_class.instance_variable_set(:@queries, counted)
      described_class.around(:action, -> { "counted #{counted}" }) { query }
      [counted, work.rows(:action).find { |row| row.name == "counted #{counted}" }.sql]
    end
    expect(known).to eq(true => 1, nil => nil)
  end

  it "publishes each run as an event" do
    events = []
    notifications = Module.new
    notifications.define_singleton_method(:instrument) { |name, payload| events << [name, payload] }
    stub_const("ActiveSupport::Notifications", notifications)
    described_class.around(:job, -> { "MailJob" }) { Array.new(500) { Object.new } }
    amounts = { duration: be > 0, objects: be >= 500, bytes: be_nil.or(be >= 20_000), gc_time: be >= 0 }
    expect(events).to match([["job.memprof", { name: "MailJob", sql: be_nil.or(be(0)), **amounts }]])
  end

  it "is not disturbed by a subscriber that raises" do
    notifications = Module.new
    notifications.define_singleton_method(:instrument) { |*| raise "mistake" }
    stub_const("ActiveSupport::Notifications", notifications)
    expect(described_class.around(:job, -> { "MailJob" }) { 7 }).to eq(7)
    expect(work.rows(:job).map(&:count)).to eq([1])
  end

  it "does not count what has no name at its end" do
    expect(described_class.around(:job, -> {}) { 7 }).to eq(7)
    expect(work.rows(:job)).to be_empty
  end
end
