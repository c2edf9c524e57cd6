# frozen_string_literal: true

require "json"
require "logger"
require "stringio"
require "zlib"
require "memprof/agent"
require "memprof/sidekiq"

RSpec.describe Memprof::Sidekiq do
  work = Memprof::Agent::Work
  counting = Memprof::Rails::Counting

  # The documented interface of Sidekiq that memprof uses; as a server, with `multi` of its client of Redis.
  let(:sidekiq) do
    Module.new do
      @commands = []
      @chain = []
      @log = StringIO.new
      @started = []

      class << self
        attr_reader :commands, :chain, :log, :started

        def configure_server = yield(self)
        def server_middleware = yield(self)
        def add(middleware) = @chain |= [middleware]
        def on(event, &block) = (@started << block if event == :startup)
        def logger = @logger ||= Logger.new(@log)
        def redis = yield(self)
        def multi = yield(self)

        %i[zremrangebyscore zadd del hset expire].each do |command|
          define_method(command) { |*arguments| @commands << [command, *arguments] }
        end
      end
    end
  end

  before { stub_const("Sidekiq", sidekiq) }

  after do
    work.clear
    counting.instance_variable_set(:@jobs, nil)
  end

  def perform(job, &block)
    described_class::Middleware.new.call(nil, { "jid" => "7f" }.merge(job), "default", &block)
  end

  def names = Memprof::Agent::Work.rows(:job).to_h { |row| [row.name, row.count] }

  it "adds its middleware once" do
    expect([described_class.install, described_class.install]).to eq([true, true])
    expect(sidekiq.chain).to eq([described_class::Middleware])
    expect(sidekiq.started).to be_empty
  end

  it "does nothing without Sidekiq" do
    hide_const("Sidekiq")
    expect(described_class.install).to be(false)
  end

  it "refuses settings that are none" do
    expect { described_class.install(agent: "90%") }.to raise_error(ArgumentError, /"90%"/)
  end

  it "starts the agent with the server if asked" do
    allow(Memprof::Agent).to receive(:start)
    described_class.install(agent: { limit: "90%" })
    expect(Memprof::Agent).not_to have_received(:start)
    sidekiq.started.each(&:call)
    expect(Memprof::Agent).to have_received(:start).with(limit: "90%")
  end

  it "lets the server start with wrong settings of the agent" do
    described_class.install(agent: { limits: "90%" })
    sidekiq.started.each(&:call)
    expect(sidekiq.log.string).to include("memprof: the agent is off: ", "limits")
  end

  it "counts jobs by class, also those that raise" do
    expect(perform("class" => "MailJob") { Array.new(300) { Object.new }.size }).to eq(300)
    expect { perform("class" => "BadJob") { raise "as asked" } }.to raise_error("as asked")
    row = work.rows(:job).find { |found| found.name == "MailJob" }
    expect(row.objects).to be >= 300
    expect(row.sql).to be_nil unless counting.instance_variable_get(:@queries)
    expect(names).to eq("MailJob" => 1, "BadJob" => 1)
    expect(sidekiq.commands).to be_empty
  end

  it "counts a job of Active Job once" do
    job = { "class" => "Sidekiq::ActiveJob::Wrapper", "wrapped" => "PageJob" }
    perform(job) { nil }
    expect(names).to eq("PageJob" => 1)
    perform(job) do
      counting.jobs(Class.new { def self.around_perform = nil }) # as its first job loads Active Job
      counting.around(:job, -> { "PageJob" }) { nil }
    end
    expect(names).to eq("PageJob" => 2)
  end

  it "adds itself to a Sidekiq that is loaded" do
    skip "Sidekiq is not installed (ruby-sidekiq)" unless run_ruby("require 'sidekiq'").success?

    stdout, stderr, status = run_ruby(<<~RUBY)
      require "sidekiq"
      require "sidekiq/cli" # as in the server
      require "memprof/sidekiq"
      config = Sidekiq.respond_to?(:default_configuration) ? Sidekiq.default_configuration : Sidekiq
      chain = config.server_middleware
      chain.invoke(nil, { "class" => "MailJob", "jid" => "7f" }, "default") { puts "performed" }
      puts chain.entries.map(&:klass)
      Memprof::Agent::Work.rows(:job).each { |row| puts row.name, row.count, row.sql.inspect }
    RUBY
    expect(status).to be_success, stderr
    expect(stdout.lines.map(&:chomp)).to eq(%w[performed Memprof::Sidekiq::Middleware MailJob 1 nil])
  end

  describe "the profile of a job" do
    it "is stored where Sidekiq's tab finds it" do
      value = perform("class" => "Wrapper", "wrapped" => "PageJob", "memprof" => true) { "page" * 1000 }
      expect(value).to start_with("page")
      now = Time.now.to_f
      expect(sidekiq.commands.map(&:first)).to eq(%i[zremrangebyscore zadd del hset expire])
      _, added, removed, (_, key, record), expires = sidekiq.commands
      expect(added).to match([:zadd, "profiles", be_within(60).of(now + 86_400), "memprof-7f"])
      expect([removed, key, expires])
        .to eq([[:del, "memprof-7f"], "memprof-7f", [:expire, "memprof-7f", 86_400]])
      expect(record).to match("started_at" => be_within(60).of(now), "token" => "memprof",
        "type" => "PageJob", "jid" => "7f", "elapsed" => be >= 0, "data" => String,
        "size" => record["data"].bytesize)
      expect(record["started_at"]).to be_an(Integer)
    end

    it "has call stacks in Firefox's format, of the job's thread and those that it starts" do
      start = Queue.new
      other = Thread.new { start.pop && eval('Array.new(9) { "x" * 9 }', nil, "other_job.rb", 1) }
      perform("class" => "MailJob", "memprof" => true) do
        start << true
        other.join
        Thread.new { eval('Array.new(9) { "x" * 9 }', nil, "in_the_job.rb", 1) }.join
      end
      text = Zlib.gunzip(sidekiq.commands.assoc(:hset)[2]["data"])
      expect(JSON.parse(text)).to include("meta", "threads")
      expect(text).to include("in_the_job.rb")
      expect(text).not_to include("other_job.rb")
    end

    it "is not stored for a job that raises, which ends tracking as well" do
      session = nil
      allow(Memprof::Session).to receive(:prepare).and_wrap_original do |original, **options|
        session = original.call(**options)
      end
      job = { "class" => "BadJob", "memprof" => true }
      expect { perform(job) { raise "as asked" } }.to raise_error("as asked")
      expect([sidekiq.commands, session.closed?]).to eq([[], true])
    end

    it "costs no job its success where Redis fails, or where nothing can be tracked" do
      allow(sidekiq).to receive(:redis).and_raise(IOError, "gone\nfor good")
      expect(perform("class" => "MailJob", "memprof" => true) { 7 }).to eq(7)
      allow(Memprof::Session).to receive(:prepare).and_raise(Memprof::Unsupported, "not on this Ruby")
      runs = 0
      expect(perform("class" => "MailJob", "memprof" => true) { runs += 1 }).to eq(1)
      allow(Memprof::Session).to receive(:prepare).and_wrap_original do |original, **options|
        original.call(**options).tap do |session|
          allow(session).to receive(:open).and_raise(Memprof::Error, "broken")
        end
      end
      expect(perform("class" => "MailJob", "memprof" => true) { runs += 1 }).to eq(2)
      expect(names).to eq("MailJob" => 3)
      expect(sidekiq.log.string.lines).to match([/no profile of MailJob: gone\S+for good \(IOError\)$/,
        /no profile of MailJob: not on this Ruby/, /no profile of MailJob: broken/])
    end
  end
end
