# frozen_string_literal: true

require "memprof/agent/work"

RSpec.describe Memprof::Agent::Work do
  before { described_class.clear }
  after { described_class.clear }

  def record(name, kind: :action, duration: 0.1, **amounts)
    described_class.record(kind: kind, name: name, duration: duration, **amounts)
  end

  it "adds up the runs of a name" do
    record("PagesController#show", duration: 0.25, objects: 10, bytes: 400, gc_time: 0.01, sql: 3)
    record("PagesController#show", duration: 0.5, objects: 5, bytes: 200, gc_time: 0.02, sql: 1)
    row = described_class.rows(:action).first
    expect(row).to have_attributes(kind: :action, name: "PagesController#show", count: 2, duration: 0.75,
      objects: 15, bytes: 600, sql: 4)
    expect(row.gc_time).to be_within(1e-9).of(0.03)
    expect(described_class.rows(:job)).to eq([])
  end

  it "distinguishes zero from unknown" do
    record("A", objects: 0)
    row = described_class.rows(:action).first
    expect(row).to have_attributes(objects: 0, bytes: nil, gc_time: nil, sql: nil)
  end

  it "knows how many runs were counted" do
    [7, nil, 0].each { |objects| record("A", objects: objects) }
    record("B")
    rows = described_class.rows(:action).to_h { |row| [row.name, [row.count, row.counted, row.objects]] }
    expect(rows).to eq("A" => [3, 2, 7], "B" => [1, 0, nil])
  end

  it "bounds the names, and none of its counts ever goes down" do
    1000.times { |number| record("Job#{number}", kind: :job) }
    rows = described_class.rows(:job)
    expect(rows.size).to eq(described_class::NAMES + 1)
    expect(rows.find { |row| row.name == "other" }.count).to eq(900)
    expect(rows.sum(&:count)).to eq(1000)
    record("Job0", kind: :job)
    expect(described_class.rows(:job).find { |row| row.name == "Job0" }.count).to eq(2)
  end

  it "shortens names, and makes them UTF-8" do
    record("x" * 10_000)
    record("\xFF\n".b)
    names = described_class.rows(:action).map(&:name)
    expect(names).to all(satisfy { |name| name.valid_encoding? && name.size <= 200 })
  end

  it "refuses an unknown kind" do
    expect { record("A", kind: :cron) }.to raise_error(ArgumentError, /expected :action or :job/)
  end

  it "is right within 9 % about percentiles" do
    random = Random.new(1)
    durations = Array.new(5000) { 10**random.rand(-3.9..3.5) }
    durations.each { |duration| record("A", duration: duration) }
    row = described_class.rows(:action).first
    [0.5, 0.9, 0.95, 0.99, 1].each do |share|
      exact = durations.sort[(share * durations.size).ceil - 1]
      expect(row.percentile(share)).to be_within(exact * 0.091).of(exact), "percentile #{share}"
    end
  end

  it "accepts any duration" do
    [0, -1, 1e-9, 1e9, Float::INFINITY].each { |duration| record("A", duration: duration) }
    expect(described_class.rows(:action).first.count).to eq(5)
    expect(described_class.rows(:action).first.percentile(0.99)).to be > 3600
  end

  it "loses no run of many threads" do
    Array.new(8) { Thread.new { 500.times { |number| record("A#{number % 7}", objects: 1) } } }.each(&:join)
    expect(described_class.rows(:action).sum(&:objects)).to eq(4000)
  end

  it "starts from zero in the child of a fork" do
    record("A")
    reader, writer = IO.pipe
    pid = fork do
      record("B")
      writer.write(described_class.rows(:action).map(&:name).join(","))
      exit!(0)
    end
    writer.close
    Process.wait(pid)
    expect(reader.read).to eq("B")
    expect(described_class.rows(:action).map(&:name)).to eq(["A"])
  end
end
