# frozen_string_literal: true

require "memprof/middleware"
require "rack"
require "rack/lint"
require "rack/mock"
require "stringio"

# Rack::Lint on both sides, with whichever Rack is installed: 2 and 3 differ in what a body may be.
RSpec.describe Memprof::Middleware, "under Rack::Lint" do
  include_context "with the middleware"

  def check(app, path: "/", method: "GET")
    linted = Rack::Lint.new(described_class.new(Rack::Lint.new(app), io: printed))
    Rack::MockRequest.new(linted).request(method, path)
  end

  let(:headers) { { "content-type" => "text/plain" } }

  it "serves an Array" do
    response = check(->(_env) { [200, headers, ["hel", "lo"]] })
    expect([response.status, response.body]).to eq([200, "hello"])
    expect(printed.string).to start_with(heading)
  end

  it "serves a body that makes its parts as it goes, and closes it" do
    closed = false
    body = Object.new
    body.define_singleton_method(:each) { |&block| 3.times { |number| block.call("part #{number} ") } }
    body.define_singleton_method(:close) { closed = true }
    expect(check(->(_env) { [200, headers, body] }).body).to eq("part 0 part 1 part 2 ")
    expect(closed).to be(true)
    expect(printed.string.scan(heading).size).to eq(1)
  end

  it "serves a file" do
    response = check(Rack::Files.new(__dir__), path: "/#{File.basename(__FILE__)}")
    expect(response.body).to eq(File.binread(__FILE__).force_encoding(response.body.encoding))
    expect(printed.string.scan(heading).size).to eq(1)
  end

  it "serves HEAD and 304 without a body" do
    expect(check(->(_env) { [200, headers, []] }, method: "HEAD").body).to eq("")
    expect(check(->(_env) { [304, {}, []] }).status).to eq(304)
  end

  it "works in a stack with other middleware" do
    app = Rack::Builder.app do
      use Rack::ContentLength
      use Rack::ETag
      use Rack::ConditionalGet
      use Rack::Deflater
      use Memprof::Middleware, io: StringIO.new
      run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"].each] }
    end
    response = Rack::MockRequest.new(Rack::Lint.new(app)).get("/")
    expect([response.status, response.body]).to eq([200, "hello"])
  end

  it "serves a body that streams", if: Rack.release >= "3" do
    streaming = ->(stream) { stream.write("hello") and stream.close }
    status, _, body = wrap(Rack::Lint.new(->(_env) { [200, headers, streaming] })).call(env)
    stream = StringIO.new
    body.call(stream)
    body.close
    expect([status, stream.string]).to eq([200, "hello"])
    expect(sessions).to all(be_closed)
  end
end
