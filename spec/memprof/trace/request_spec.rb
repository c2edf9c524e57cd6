# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe Memprof, ".trace_request" do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:path) { File.join(directory, "requests.json") }

  before { described_class.trace_filename = path }

  after do
    described_class.trace_filename = nil
    FileUtils.rm_rf(directory)
  end

  def record(env = {}, **options, &block)
    described_class.trace_request(env, tracers: :gc, **options, &(block || -> { nil }))
    JSON.parse(File.readlines(path).last)
  end

  it "writes when it came, what it did, what it was, what came of it and how long it took" do
    env = { "REQUEST_PATH" => "/home", "PATH_INFO" => "/home", "REMOTE_ADDR" => "127.0.0.1",
            "REQUEST_URI" => "/home?a=1", "REQUEST_METHOD" => "GET", "QUERY_STRING" => "a=1",
            "HTTP_COOKIE" => "secret", "rack.input" => $stdin }
    before = Process.clock_gettime(Process::CLOCK_REALTIME, :microsecond)
    record = record(env) { [404, {}, []] }

    expect(record.keys).to eq(%w[start tracers request response time])
    expect(record["start"]).to be_between(before,
      Process.clock_gettime(Process::CLOCK_REALTIME, :microsecond))
    expect(record["tracers"].keys).to eq(["gc"])
    expect(record["request"]).to eq(env.reject { |key, _| %w[HTTP_COOKIE rack.input].include?(key) })
    expect(record["response"]).to eq("code" => 404)
    expect(record["time"]).to be_a(Float).and be_between(0, 60)
  end

  it "writes what was asked for, whatever the application makes of it" do
    env = { "PATH_INFO" => "/home", "REQUEST_METHOD" => "GET" }
    record = record(env) { env.merge!("PATH_INFO" => "/404", "QUERY_STRING" => "status=404") }
    expect(record["request"]).to eq("PATH_INFO" => "/home", "REQUEST_METHOD" => "GET")
  end

  it "writes the request's id, which Rails knows at the end, without what is no id" do
    id = ->(env, &block) { record(env, &block).dig("request", "request_id") }
    expect(id.call({ "HTTP_X_REQUEST_ID" => "ab-1\n\e<x>#{"y" * 400}" })).to match(/\Aab-1xy{240,255}\z/)
    env = { "HTTP_X_REQUEST_ID" => "client" }
    expect(id.call(env) { env["action_dispatch.request_id"] = "rails" }).to eq("rails")
    expect(record({ "HTTP_X_REQUEST_ID" => "" })["request"]).to eq({})
  end

  it "writes an empty query as null" do
    expect(record({ "QUERY_STRING" => "", "PATH_INFO" => "" })["request"])
      .to eq("QUERY_STRING" => nil, "PATH_INFO" => "")
  end

  {
    "Rails 2" => { "action_controller.request.path_parameters" => { "controller" => "home",
                                                                    "action" => "show" } },
    "Rails 3" => { "action_dispatch.request.parameters" => { "controller" => "home", "action" => "show",
                                                             "id" => 1 } },
    "Rails today" => { "action_dispatch.request.path_parameters" => { controller: "home", action: :show } }
  }.each do |version, env|
    it "reports controller and action of #{version}" do
      expect(record(env)["rails"]).to eq("controller" => "home", "action" => "show")
    end
  end

  it "sees the parameters that the router adds on the way" do
    env = {}
    record = record(env) { env["action_dispatch.request.path_parameters"] = { controller: "a", action: "b" } }
    expect(record["rails"]).to eq("controller" => "a", "action" => "b")
  end

  it "says nothing of what is not there" do
    expect(record({ "action_dispatch.request.parameters" => { "id" => 1 } }).keys).to eq(%w[start tracers
      request time])
    expect(record(nil).keys).to eq(%w[start tracers time])
  end

  it "returns the block's value, and writes when it raises or throws" do
    expect(described_class.trace_request({}, tracers: :gc) { :value }).to eq(:value)
    expect { described_class.trace_request({}, tracers: :gc) { raise IOError } }.to raise_error(IOError)
    catch(:async) { described_class.trace_request({}, tracers: :gc) { throw :async } }
    expect(File.readlines(path).size).to eq(3)
    expect(JSON.parse(File.readlines(path).last)).not_to have_key("response")
  end

  describe "of a block that raises" do
    def raising(error)
      expect { described_class.trace_request({}, tracers: :gc) { raise error } }.to raise_error(error)
      JSON.parse(File.readlines(path).last)
    end

    it "writes the class of what was raised, and that it is a 500" do
      expect(raising(IOError)).to include("exception" => "IOError", "response" => { "code" => 500 })
      expect(raising(NotImplementedError)).to include("exception" => "NotImplementedError")
    end

    it "writes the nearest name there is" do
      anonymous = Class.new(KeyError) { def self.name = raise(IOError) }
      expect(raising(anonymous)["exception"]).to eq("KeyError")
    end

    it "has no code without a response" do
      lines = [SystemExit, Interrupt].map { |error| raising(error).values_at("exception", "response") }
      expect(lines).to eq([["SystemExit", nil], ["Interrupt", nil]])
    end

    it "writes the code that stands behind it, also behind its cause" do
      expect(raising(Errno::ECONNRESET)["exception_code"])
        .to eq("class" => "Errno::ECONNRESET", "errno" => Errno::ECONNRESET::Errno)
      wrapper = Class.new(StandardError)
      stub_const("Wrapper", wrapper)
      expect {
        described_class.trace_request({}, tracers: :gc) do
          raise Errno::EPIPE
        rescue Errno::EPIPE
          raise wrapper, "lost"
        end
      }.to raise_error(wrapper)
      expect(JSON.parse(File.readlines(path).last)).to include("exception" => "Wrapper",
        "exception_code" => { "class" => "Errno::EPIPE", "errno" => Errno::EPIPE::Errno })
      expect(raising(IOError)).not_to have_key("exception_code")
    end

    it "writes those of clients of databases, whatever they give" do
      stub_const("Mysql2::Error", Class.new(StandardError) {
        def error_number = 1062
        def sql_state = "23000"
      })
      expect(raising(Class.new(Mysql2::Error))["exception_code"])
        .to eq("class" => "Mysql2::Error", "error_number" => 1062, "sqlstate" => "23000")
      stub_const("SQLite3::Exception", Class.new(StandardError) { def code = raise })
      stub_const("Trilogy::BaseError", Class.new(StandardError) { def error_code = nil })
      stub_const("PG::Error", Class.new(StandardError) { def result = raise(IOError) })
      [SQLite3::Exception, Trilogy::BaseError, PG::Error].each do |error|
        expect(raising(error)).not_to have_key("exception_code")
      end
    end

    it "knows those that the application has answered" do
      env = {}
      answered = record(env) do
        env["action_dispatch.exception"] = KeyError.new("gone")
        [404, {}, []]
      end
      expect(answered).to include("exception" => "KeyError", "response" => { "code" => 404 })
      expect(record({ "rack.exception" => "no exception" })).not_to have_key("exception")
    end

    it "has the status that Rails answers with, if Rails does" do
      wrapper = Class.new { def self.status_code_for_exception(name) = name == "KeyError" ? 404 : 500 }
      stub_const("ActionDispatch::ExceptionWrapper", wrapper)
      codes = { true => 404, :all => 404, :rescuable => 404, :none => 500, false => 500, nil => 500 }
      found = codes.to_h do |shown, _|
        env = { "action_dispatch.show_exceptions" => shown }
        expect { described_class.trace_request(env, tracers: :gc) { raise KeyError } }
          .to raise_error(KeyError)
        [shown, JSON.parse(File.readlines(path).last)["response"]["code"]]
      end
      expect(found).to eq(codes)
    end

    it "has neither if it throws, or is answered" do
      catch(:done) { described_class.trace_request({}, tracers: :gc) { throw :done } }
      expect(JSON.parse(File.readlines(path).last).keys).to eq(%w[start tracers request time])
      record do
        raise IOError
      rescue IOError
        [200, {}, []]
      end
      expect(JSON.parse(File.readlines(path).last)).not_to have_key("exception")
    end
  end

  it "writes valid JSON whatever the request is" do
    record = record({ "PATH_INFO" => "/\xff\u2028\"", "QUERY_STRING" => "\x00".b, "REQUEST_URI" => "\xE4".b })
    expect(record["request"]).to include("PATH_INFO" => "/\\xFF\u2028\"", "REQUEST_URI" => "\\xE4")
  end

  it "counts no object of its own" do
    described_class.trace_request({}, tracers: :objects) { 10.times { Object.new } }
    expect(JSON.parse(File.read(path))["tracers"]["objects"]["types"]).to eq("object" => 10)
  end

  it "prints it where there is no file" do
    described_class.trace_filename = nil
    expect {
      described_class.trace_request({}, tracers: :gc) {
        nil
      }
    }.to output(/\A{\n  "start": \d{16},\n/).to_stdout
  end

  describe ".trace_to" do
    it "limits the size of the file for all that trace requests" do
      described_class.trace_to(path, max_size: 2000)
      tracer = Memprof::Tracer.new(->(_) { [200, {}, []] }, tracers: :gc)
      10.times do
        record
        tracer.call({})
      end
      expect([path, "#{path}.1"].map { |file| File.size(file) }).to all(be_between(1, 2000))
    end

    it "traces no more when the file is full, if it is asked to" do
      described_class.trace_to(path, max_size: 2000, when_full: :stop)
      tracer = Memprof::Tracer.new(->(_) { [200, {}, []] }, tracers: :gc)
      values = nil
      expect { values = Array.new(10) { [described_class.trace_request({}) { 200 }, tracer.call({}).first] } }
        .to output("memprof: #{path} is full: no more requests are traced; said only once\n").to_stderr
      expect(values.last).to eq([200, 200])
      expect(File.size(path)).to be_between(1, 2000)
      expect(File.exist?("#{path}.1")).to be(false)
    end

    it "refuses what is no limit, and keeps the file that was open" do
      { max_size: 0, when_full: :delete }.each do |name, value|
        expect {
          described_class.trace_to("other", name => value)
        }.to raise_error(ArgumentError, /#{name} must be/)
      end
      expect(described_class.trace_filename).to eq(path)
    end
  end

  describe ".trace_filename=" do
    it "adds to the file, which is its owner's alone, until it is nil" do
      record({ "REQUEST_PATH" => "value" })
      expect(described_class.trace_filename).to eq(path)
      described_class.trace_filename = path
      record
      described_class.trace_filename = nil
      expect(described_class.trace_filename).to be_nil
      expect(File.read(path)).to include('"REQUEST_PATH":"value"')
      expect(File.readlines(path).size).to eq(2)
      expect(File.stat(path).mode & 0o777).to eq(0o600)
    end

    it "says what is wrong, and keeps the file that was open" do
      expect { described_class.trace_filename = "/nowhere/x" }
        .to raise_error(Memprof::Error, /no such directory/)
      expect { described_class.trace_filename = 7 }
        .to raise_error(ArgumentError, "path must be a String or a Pathname, not 7")
      expect(described_class.trace_filename).to eq(path)
    end
  end

  it "needs a block" do
    expect { described_class.trace_request({}) }.to raise_error(ArgumentError, "block required")
  end
end
