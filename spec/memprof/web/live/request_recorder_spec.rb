# frozen_string_literal: true

require "memprof/web"
require "rack"
require "rack/lint"
require "rack/mock"

RSpec.describe Memprof::Web::Live::RequestRecorder do
  let(:recorder) { described_class.new }
  let(:app) { ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"]] } }
  let(:traced) { Memprof::Web::Tracing.new(app, recorder: recorder) }

  def get(path)
    Rack::MockRequest.new(Rack::Lint.new(Memprof::Web::Tracing.new(Rack::Lint.new(app), recorder: recorder)))
      .get(path)
  end

  it "traces nothing until it is asked to" do
    expect(Memprof::Trace::Request).not_to receive(:new)
    expect(get("/").body).to eq("hello")
    expect(recorder.state).to eq(wanted: 0, left: 0, traced: 0)
  end

  it "traces as many requests as were asked for, and no more" do
    recorder.start(3)
    5.times { |number| expect(get("/#{number}").status).to eq(200) }
    expect(recorder.state).to eq(wanted: 3, left: 0, traced: 3)
    expect(recorder.records.map { |record| record["request"]["PATH_INFO"] }).to eq(["/0", "/1", "/2"])
    expect(recorder.records).to all(include("tracers" => include("objects", "gc"),
      "response" => { "code" => 200 }))
  end

  it "puts calls back when the last one is through" do
    pool = instance_spy(Memprof::Trace::Pool)
    allow(Memprof::Trace::Pool).to receive(:new).and_return(pool)
    recorder.start(2)
    get("/")
    expect(pool).not_to have_received(:uninstall)
    get("/")
    expect(pool).to have_received(:uninstall).once
    get("/")
    expect(pool).to have_received(:install).twice
  end

  it "records a request that raises, and passes the exception on" do
    recorder.start(1)
    broken = Memprof::Web::Tracing.new(->(_env) { raise IOError, "gone" }, recorder: recorder)
    expect { broken.call({ "PATH_INFO" => "/broken" }) }.to raise_error(IOError, "gone")
    expect(recorder.records.first["request"]).to eq("PATH_INFO" => "/broken")
  end

  it "does not count requests to the pages themselves" do
    own = Memprof::Web::Tracing.new(Memprof::Web.new, recorder: recorder)
    recorder.start(1)
    2.times { own.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/memprof/live" }) }
    expect(recorder.state).to eq(wanted: 1, left: 1, traced: 0)
    recorder.stop
    get("/")
    expect(recorder.state).to eq(wanted: 1, left: 0, traced: 0)
  end

  it "traces exactly so many of those of many threads" do
    recorder.start(50)
    threads = Array.new(8) { Thread.new { 20.times { traced.call({ "PATH_INFO" => "/" }) } } }
    threads.each(&:join)
    expect(recorder.state).to eq(wanted: 50, left: 0, traced: 50)
  end

  it "wants nothing in a process that was forked" do
    recorder.start(2)
    get("/")
    reader, writer = IO.pipe
    pid = fork do
      get("/")
      writer.write(recorder.state.values.join(" "))
      exit!(0)
    end
    Process.wait(pid)
    writer.close
    expect(reader.read).to eq("0 0 0")
    expect(recorder.state).to eq(wanted: 2, left: 1, traced: 1)
  end

  it "refuses invalid numbers" do
    [0, -1, described_class::MOST + 1].each do |count|
      expect { recorder.start(count) }.to raise_error(ArgumentError, /1 to 500 requests/)
    end
  end
end
