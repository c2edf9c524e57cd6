# frozen_string_literal: true

require "json"
require "memprof/tracer"
require "tmpdir"

RSpec.describe Memprof::Filter do
  let(:path) { File.join(Dir.mktmpdir("memprof-spec-"), "requests.json") }
  let(:request) do
    Struct.new(:env, :path_parameters).new({ "PATH_INFO" => "/home", "REQUEST_METHOD" => "GET" },
      { "controller" => "home", "action" => "index" })
  end
  let(:controller) { Struct.new(:request, :response).new(request, Struct.new(:status).new("201 Created")) }

  before { Memprof.trace_filename = path }

  after do
    Memprof.trace_filename = nil
    FileUtils.rm_rf(File.dirname(path))
  end

  it "traces an action, with what Rails calls it" do
    expect(described_class.filter(controller) { :value }).to eq(:value)

    record = JSON.parse(File.read(path))
    expect(record).to include("rails" => { "controller" => "home", "action" => "index" },
      "request" => { "PATH_INFO" => "/home", "REQUEST_METHOD" => "GET" }, "response" => { "code" => 201 })
    expect(request.env.size).to eq(2)
  end

  it "is a filter itself: around_action calls around" do
    described_class.around(controller) { nil }
    expect { described_class.around(controller) { raise IOError } }.to raise_error(IOError)
    expect(File.readlines(path).size).to eq(2)
  end

  it "takes the symbols of Rails today" do
    request.path_parameters = { controller: "home", action: "show" }
    described_class.filter(controller) { nil }
    expect(JSON.parse(File.read(path))["rails"]).to eq("controller" => "home", "action" => "show")
  end
end
