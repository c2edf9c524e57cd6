# frozen_string_literal: true

require "memprof/middleware"
require "rack"
require "rack/mock"

# What goes through the middleware stays what it is.
RSpec.describe Memprof::Middleware, "and the response" do
  include_context "with the middleware"

  it "is the app's own when its body is an Array" do
    response = [200, { "content-type" => "text/plain" }.freeze, ["a"].freeze].freeze
    expect(wrap(->(_env) { response }).call(env)).to equal(response)
    expect(sessions).to all(be_closed)
  end

  it "keeps status and headers, and leaves the app's Array alone, when the body is wrapped" do
    response = [200, { "content-type" => "text/plain" }, ["a"].each]
    status, headers, body = wrap(->(_env) { response }).call(env)
    expect(status).to be(200)
    expect(headers).to equal(response[1])
    expect(body).not_to equal(response[2])
    expect(response[2]).to be_an(Enumerator)
  end

  it "responds to what the app's body responds to, and to close" do
    { each: 0, call: 1, to_path: 0, to_ary: 0, stream: 2 }.each do |name, arity|
      only = Object.new
      only.define_singleton_method(name) { |*arguments| [name, arguments.size == arity] }
      body = wrap(->(_env) { [200, {}, only] }).call(env).last
      expect(%i[each call to_path to_ary stream close].select { |asked| body.respond_to?(asked) })
        .to contain_exactly(name, :close)
      expect(body.public_send(name, *Array.new(arity))).to eq([name, true])
      expect { body.something_else }.to raise_error(NoMethodError)
      body.close
    end
  end

  it "passes blocks and keyword arguments on" do
    inner = Object.new
    inner.define_singleton_method(:each) { |by: 1, &block| [by, by * 2].each(&block) }
    body = wrap(->(_env) { [200, {}, inner] }).call(env).last
    expect([].tap { |seen| body.each(by: 3) { |number| seen << number } }).to eq([3, 6])
  end

  it "closes the app's body once" do
    closed = 0
    inner = ["a"].each
    inner.define_singleton_method(:close) { closed += 1 }
    body = wrap(->(_env) { [200, {}, inner] }).call(env).last
    2.times { body.close }
    expect(closed).to eq(1)
    expect(printed.string.scan(heading).size).to eq(1)
  end

  it "closes an Array that can be closed" do
    closed = false
    array = ["a"]
    array.define_singleton_method(:close) { closed = true }
    wrap(->(_env) { [200, {}, array] }).call(env).last.close
    expect(closed).to be(true)
    expect(sessions).to all(be_closed)
  end

  it "is passed on even if it is no response" do
    expect(wrap(->(_env) { nil }).call(env)).to be_nil
    expect(wrap(->(_env) { [-1, {}] }).call(env)).to eq([-1, {}])
    expect(wrap(->(_env) { [200, {}, nil] }).call(env)).to eq([200, {}, nil])
    expect(sessions).to all(be_closed)
  end
end
