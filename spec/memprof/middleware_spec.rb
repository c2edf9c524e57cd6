# frozen_string_literal: true

require "memprof/middleware"
require "rack"
require "rack/mock"
require "stringio"
require "tempfile"

RSpec.describe Memprof::Middleware do
  include_context "with the middleware"

  let(:kept) { [] }

  # "Class" => objects, of all reports together.
  def reported(text = printed.string)
    rows = text.scan(/^ *(\d+) .*:\d+:(.*)$/)
    rows.each_with_object(Hash.new(0)) { |(count, name), sum| sum[name] += count.to_i }
  end

  describe "the report" do
    it "is a blank line, a rule, and the lines of what the request allocated and is still alive" do
      line = __LINE__ + 1
      app = wrap(->(_env) { 12.times { kept << Object.new } and [200, {}, []] })
      app.call(env)
      expect(printed.string).to start_with(heading)
      expect(printed.string).to include("     12 #{__FILE__}:#{line}:Object\n")
      expect(printed.string.delete_prefix(heading).lines).to all(match(/\A *\d+ .+:\d+:.+\n\z/))
    end

    it "names nothing of the middleware's own" do
      body = Class.new { def each = yield("a") }.new
      wrap(->(_env) { [200, {}, body] }).call(env).last.tap { |wrapped| wrapped.each(&:itself) }.close
      expect(printed.string).to start_with(heading)
      expect(printed.string).not_to include("lib/memprof")
    end

    it "goes out in one write" do
      writes = []
      io = Object.new
      io.define_singleton_method(:write) { |text| writes << text }
      2.times { described_class.new(->(_env) { [200, {}, [+"a"]] }, io: io).call(env) }
      expect(writes.size).to eq(2)
      expect(writes).to all(start_with(heading))
    end

    it "goes out alone, whatever threads report at once" do
      writing = 0
      most = 0
      io = Object.new
      io.define_singleton_method(:write) { |_| (most = [most, writing += 1].max) && sleep(0.001) }
      io.define_singleton_method(:flush) { sleep(0.001) && (writing -= 1) }
      app = described_class.new(->(_env) { [200, {}, []] }, io: io)
      8.times.map { Thread.new { 5.times { app.call({}) } } }.each(&:join)
      expect([most, writing]).to eq([1, 0])
    end

    it "goes to the current standard output by default" do
      app = described_class.new(->(_env) { [200, {}, []] })
      expect { app.call(env) }.to output(/\A#{heading}/).to_stdout
    end

    it "has as many lines as asked for, the largest" do
      app = ->(_env) {
        3.times { kept << Object.new }
        2.times { kept << [] }
        kept << {}
        [200, {}, []]
      }
      wrap(app, limit: 2).call(env)
      expect(printed.string.delete_prefix(heading).lines.map { |line| line[/\d+/].to_i }).to eq([3, 2])
    end

    it "shows only what stays if garbage is collected first" do
      app = ->(_env) do
        500.times { Object.new }
        3.times { kept << Object.new }
        [200, {}, []]
      end
      wrap(app, force_gc: true).call(env)
      expect(printed.string).to start_with("#{heading}Forcing GC....\n")
      expect(reported["Object"]).to be_between(3, 5)
    end

    it "can be of a sample" do
      wrap(->(_env) { 20_000.times { kept << Object.new } and [200, {}, []] }, sample: 10).call(env)
      expect(reported["Object"]).to be_within(3000).of(20_000)
    end

    it "comes only for the requests that are chosen" do
      app = wrap(->(_env) { [200, {}, []] }, only: ->(request) { request["PATH_INFO"] == "/yes" })
      app.call(Rack::MockRequest.env_for("/no"))
      expect(sessions).to be_empty
      app.call(Rack::MockRequest.env_for("/yes"))
      expect(sessions.size).to eq(1)
      expect(printed.string).to start_with(heading)
    end
  end

  describe "tracking" do
    it "continues until the body is closed" do
      list = kept
      inner = Object.new
      inner.define_singleton_method(:each) { |&block| 4.times { list << Object.new } and block.call("a") }
      body = wrap(->(_env) { [200, {}, inner] }).call(env).last
      body.each(&:itself)
      expect(printed.string).to be_empty
      body.close
      expect(reported["Object"]).to eq(4)
      expect(sessions).to all(be_closed)
    end

    it "ends when the body is closed by another thread" do
      inner = [+"a"].each
      body = wrap(->(_env) { 3.times { kept << Object.new } and [200, {}, inner] }).call(env).last
      Thread.new { body.close }.join
      expect(reported["Object"]).to eq(3)
      expect(sessions).to all(be_closed)
    end

    it "ends when the server takes the body as an Array" do
      inner = Object.new
      inner.define_singleton_method(:to_ary) { ["a"] }
      body = wrap(->(_env) { [200, {}, inner] }).call(env).last
      expect(body.to_ary).to eq(["a"])
      expect(sessions).to all(be_closed)
      expect(printed.string.scan(heading).size).to eq(1)
    end

    it "ends when the app raises, with a report, and the exception continues" do
      app = wrap(->(_env) { 3.times { kept << Object.new } and raise(NotImplementedError, "broken") })
      expect { app.call(env) }.to raise_error(NotImplementedError, "broken")
      expect(reported["Object"]).to eq(3)
      expect(sessions).to all(be_closed)
    end

    it "continues when what is taken as an Array is none, as Rails has it" do
      made = Enumerator.new { |parts| 3.times { kept << Object.new } and parts << "a" }
      inner = Object.new
      inner.define_singleton_method(:to_ary) { made.each }
      taken = wrap(->(_env) { [200, {}, inner] }).call(env).last
      body = taken.to_ary
      taken.close
      full_gc
      expect(printed.string).to be_empty
      expect(body.each(&:itself) && body.respond_to?(:to_ary)).to be(false)
      body.close
      expect(reported["Object"]).to eq(3)
    end

    it "ends once, though the body and the server both say so, and at the same time" do
      env["rack.after_reply"] = []
      io = Object.new
      writes = []
      io.define_singleton_method(:write) { |text| sleep(0.01) && writes << text }
      body = described_class.new(->(_env) { [200, {}, ["a"].each] }, io: io).call(env).last
      expect do
        [-> { body.close }, *env["rack.after_reply"]].map { |done| Thread.new { done.call } }.each(&:join)
      end.not_to output.to_stderr
      expect(writes.size).to eq(1)
    end

    it "ends when closing the body raises" do
      inner = ["a"].each
      inner.define_singleton_method(:close) { raise "broken" }
      body = wrap(->(_env) { [200, {}, inner] }).call(env).last
      expect { body.close }.to raise_error("broken")
      expect(sessions).to all(be_closed)
    end

    it "ends when the app throws" do
      expect(catch(:async) { wrap(->(_env) { throw :async, :later }).call(env) }).to eq(:later)
      expect(printed.string).to start_with(heading)
      expect(sessions).to all(be_closed)
    end

    it "ends at once when the app hijacks the connection" do
      env["rack.hijack"] = -> { env["rack.hijack_io"] = StringIO.new }
      inner = ["a"].each
      response = wrap(->(request) { request["rack.hijack"].call and [-1, {}, inner] }).call(env)
      expect(response.last).to equal(inner)
      expect(sessions).to all(be_closed)
    end

    it "ends when the server reports that the response is out, even if the body was not closed" do
      %w[rack.response_finished rack.after_reply].each do |key|
        env[key] = []
        response = wrap(->(_env) { [200, {}, ["a"].each] }).call(env)
        expect(sessions.last).not_to be_closed
        arguments = key == "rack.after_reply" ? [] : [env, 200, {}, nil]
        env[key].each { |done| done.call(*arguments) }
        expect(sessions.last).to be_closed
        expect(response.last).to respond_to(:each) # it is still there: its end would end the session too
      end
      expect(printed.string.scan(heading).size).to eq(2)
    end

    it "does not leak if the body is never closed: it ends silently with the body" do
      app = wrap(->(_env) { [200, {}, ["a"].each] })
      10.times { Thread.new { app.call(Rack::MockRequest.env_for("/")).first }.join }
      full_gc
      expect(sessions.count(&:closed?)).to be >= 8 # the stack may hold on to one or two
      expect(printed.string).to be_empty
    end

    it "is a request's own: others that run beside it do not show" do
      barrier = Queue.new
      app = wrap(->(request) do
        number = request["PATH_INFO"].delete("/").to_i
        mine = []
        number.times { mine << Object.new }
        barrier << true
        Thread.pass until barrier.size == 5
        number.times { mine << Object.new }
        [200, { "mine" => mine }, []]
      end)
      threads = (1..5).map { |number| Thread.new { app.call(Rack::MockRequest.env_for("/#{number}")) } }
      threads.each(&:join)
      reports = printed.string.split(heading).reject(&:empty?)
      expect(reports.map { |report| reported(report)["Object"] }.sort).to eq([2, 4, 6, 8, 10])
    end

    it "leaves the tracking of others alone" do
      Memprof.start
      app = wrap(->(_env) { 3.times { kept << Object.new } and [200, {}, []] })
      app.call(env)
      expect(Memprof).to be_running
      file = Tempfile.new
      Memprof.stats(file.path)
      expect(File.read(file.path)).to match(/^ +3 #{__FILE__}:\d+:Object$/)
    end

    it "is given up where it is not supported, and the request continues" do
      allow(Memprof::Session).to receive(:prepare).and_raise(Memprof::Unsupported, "this Ruby crashes")
      app = wrap(->(_env) { [204, {}, []] })
      expect { 2.times { expect(app.call(env).first).to eq(204) } }.to output(
        "memprof: the middleware does not track: this Ruby crashes (Memprof::Unsupported); said only once\n"
      ).to_stderr
    end
  end

  describe "an output that fails" do
    def expect_one_warning(io, pattern)
      app = described_class.new(->(_env) { [200, {}, ["a"]] }, io: io)
      expect { 3.times { expect(app.call(env)).to eq([200, {}, ["a"]]) } }.to output(
        /\Amemprof: the middleware cannot print its report: #{pattern}.*; said only once\n\z/
      ).to_stderr
      expect(sessions).to all(be_closed)
    end

    it "is said once: a closed pipe" do
      reader, writer = IO.pipe
      reader.close
      expect_one_warning(writer, "Broken pipe")
    end

    it "is said once: a full disk" do
      skip "there is no /dev/full" unless File.exist?("/dev/full")
      File.open("/dev/full", "w") do |io|
        expect_one_warning(io, "No space left")
      ensure
        io.close rescue nil # what was not written cannot be
      end
    end

    it "is said once: a closed file" do
      expect_one_warning(StringIO.new.tap(&:close), "not opened for writing")
    end

    it "breaks nothing even if it cannot warn" do
      app = described_class.new(->(_env) { [200, {}, []] }, io: StringIO.new.tap(&:close))
      stderr = $stderr
      $stderr = StringIO.new.tap(&:close)
      expect(app.call(env).first).to eq(200)
    ensure
      $stderr = stderr
    end
  end

  describe "options" do
    it "must be valid when the app is built, not at the first request" do
      app = ->(_env) { [200, {}, []] }
      { limit: [0, "5"], sample: [-1, 1.5], only: ["/path"], io: [5] }.each do |name, values|
        values.each do |value|
          expect { described_class.new(app, name => value) }
            .to raise_error(ArgumentError, /\A#{name} must be/)
        end
      end
      expect { described_class.new(app, bogus: 1) }.to raise_error(ArgumentError, /bogus/)
    end
  end
end
