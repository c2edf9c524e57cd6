# frozen_string_literal: true

require "json"
require "memprof/tracer"
require "tmpdir"

RSpec.describe Memprof::JobTracer do
  let(:path) { File.join(Dir.mktmpdir("memprof-spec-"), "jobs.json") }
  let(:job) { { "class" => "MailJob", "queue" => "mail", "jid" => "7f", "args" => ["a secret"] } }
  let(:records) { File.readlines(path).map { |line| JSON.parse(line) } }

  after { FileUtils.rm_rf(File.dirname(path)) }

  it "traces a job of Sidekiq, without its arguments" do
    expect(described_class.new(path: path, tracers: :objects).call(nil, job, "mail") { :value }).to eq(:value)

    expect(records).to match([{
      "start" => Integer, "tracers" => { "objects" => Hash }, "time" => Float,
      "job" => { "class" => "MailJob", "queue" => "mail", "id" => "7f" }
    }])
  end

  it "counts what the job does" do
    tracer = described_class.new(path: path, tracers: :objects)
    tracer.call(nil, job, "mail") { Array.new(300) { Object.new } }
    expect(records.dig(0, "tracers", "objects", "classes", "Object")).to include("count" => 300)
  end

  it "names the job that Active Job wraps" do
    described_class.new(path: path).call(nil, job.merge("wrapped" => "ReportJob"), "mail") { nil }
    expect(records.dig(0, "job", "class")).to eq("ReportJob")
  end

  it "passes an exception on, and writes its class" do
    tracer = described_class.new(path: path)
    expect { tracer.call(nil, job, "mail") { raise IOError, "a secret" } }.to raise_error(IOError)
    expect(records.dig(0, "exception")).to eq("IOError")
    expect(File.read(path)).not_to include("secret")
  end

  it "shares the file, and what was decided, between the tracers that Sidekiq builds" do
    made = described_class.requests(path: path, per_second: 1)
    expect(described_class.requests({ per_second: 1, path: path })).to equal(made)
    3.times { described_class.new(path: path).call(nil, job, "mail") { nil } }
    expect(records.size).to eq(3)
  end

  it "chooses jobs by the options" do
    10.times { described_class.new(path: path, one_in: 1 << 60).call(nil, job, "mail") { nil } }
    expect(File.exist?(path)).to be(false)
  end

  it "refuses invalid options when it is built" do
    expect { described_class.with(one_in: 0) }.to raise_error(ArgumentError, /one_in must be a positive/)
    expect { described_class.with(colour: 1) }.to raise_error(ArgumentError)
  end

  it "runs the job if the line can't be written" do
    result = run_ruby(<<~RUBY)
      require "memprof/tracer"
      puts Memprof::JobTracer.new(path: "/nowhere/jobs.json").call(nil, { "class" => "A" }, "mail") { 7 }
    RUBY
    expect(result.stdout).to eq("7\n")
    expect(result.stderr).to match(/cannot write its report: .*nowhere/)
  end

  it "traces Active Job, whose classes memprof trace lists" do
    need(client: "active_job")
    result = run_ruby(<<~RUBY)
      require "active_job"
      require "memprof/tracer"
      ActiveJob::Base.logger = nil
      ActiveJob::Base.queue_adapter = :inline
      class MailJob < ActiveJob::Base
        queue_as :mail
        around_perform Memprof::JobTracer.with(path: #{path.inspect})
        def perform(count) = Array.new(count) { "a" * 50 }
      end
      3.times { MailJob.perform_later(100) }
    RUBY
    expect(result.stderr).to eq("")
    expect(records.map { |record| record["job"].values_at("class", "queue") }.uniq).to eq([%w[MailJob mail]])
    out = run_memprof("trace", path).stdout
    expect(out).to match(/^MailJob +3 /)
  end
end
