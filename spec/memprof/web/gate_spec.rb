# frozen_string_literal: true

require "memprof/web"
require "rack"

RSpec.describe Memprof::Web::Gate::Mounted do
  include WebBrowser

  let(:environment) { {} }
  let(:gate) { described_class.new(environment) }
  let(:app) { web_app(cache_dump, gate: gate) }
  let(:targets) do
    ["/", "/heaps/1/", "/heaps/1.json", "/nowhere", "/assets/x", "/live", "/?token=", "/?token=x"]
  end

  def status(target = "/heaps", **options)
    ask(app, target, **options).status
  end

  it "admits no one until `permit` or a token is set" do
    targets.each { |target| expect(status(target)).to eq(404), target }
    own = { "Sec-Fetch-Site" => "same-origin" }
    expect(status("/heaps/1/close", method: "POST", headers: own)).to eq(404)
    expect(app.heaps.count).to eq(1)
  end

  it "lets in whom the block permits" do
    gate.permit { |env| env["HTTP_USER"] == "admin" }
    expect(status(headers: { "User" => "admin" })).to eq(200)
    expect(status(headers: { "User" => "guest" })).to eq(404)
    expect(status).to eq(404)
  end

  it "admits no one if the block returns nothing or raises, and warns the operator" do
    gate.permit { nil }
    expect(status).to eq(404)
    gate.permit { |env| env.fetch("warden").user }
    errors = StringIO.new
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/heaps", "rack.errors" => errors }
    expect(app.call(env).first).to eq(404)
    expect(errors.string).to match(/\Amemprof: the block of Memprof::Web.permit raised KeyError: .*warden/)
    gate.permit { raise NotImplementedError, "no user yet" }
    expect(app.call(env).first).to eq(404)
    expect(errors.string).to include("raised NotImplementedError: no user yet")
  end

  it "lets in who has the token, and shows nothing to who has not" do
    gate.token = "correct horse"
    targets.each { |target| expect(status(target)).to eq(404), target }
    opened = ask(app, "/heaps?token=correct+horse", script_name: "/memprof")
    expect([opened.status, opened.location]).to eq([303, "/memprof/heaps"])
    cookie = { "Cookie" => opened.headers["set-cookie"][/\A[^;]+/] }
    expect(status(headers: cookie)).to eq(200)
    expect(status(headers: { "Authorization" => "Bearer correct horse" })).to eq(200)
    expect(status(headers: { "Authorization" => "Bearer correct hors" })).to eq(404)
    gate.token = nil
    expect(status(headers: cookie)).to eq(404)
  end

  it "takes the cookie that another worker gave" do
    gate.token = "correct horse"
    other = described_class.new({})
    other.token = "correct horse"
    opened = ask(web_app(gate: other), "/?token=correct+horse")
    cookie = opened.headers["set-cookie"]
    expect(status(headers: { "Cookie" => cookie[/\A[^;]+/] })).to eq(200)
    expect(cookie).not_to include("correct", "; Secure")
  end

  it "takes the token of the environment" do
    environment["MEMPROF_WEB_TOKEN"] = "correct horse"
    expect(status(headers: { "Authorization" => "Bearer correct horse" })).to eq(200)
    gate.token = "another one"
    expect(status(headers: { "Authorization" => "Bearer correct horse" })).to eq(404)
  end

  it "takes no token that can be guessed" do
    ["", "1234567", 12_345_678].each { |token| expect { gate.token = token }.to raise_error(ArgumentError) }
    environment["MEMPROF_WEB_TOKEN"] = "short"
    expect { expect(status("/?token=short")).to eq(404) }
      .to output("memprof: invalid MEMPROF_WEB_TOKEN; expected at least 8 characters\n").to_stderr
  end

  it "is what the application's own mount asks" do
    result = run_ruby(<<~RUBY)
      require "memprof/web"
      env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/live", "QUERY_STRING" => "", "rack.input" => nil }
      print Memprof::Web.call(env.dup).first, " "
      Memprof::Web.permit { |given| given["PATH_INFO"] == "/live" }
      print Memprof::Web.call(env.dup).first, " "
      begin
        Memprof::Web.permit
      rescue ArgumentError => e
        print e.message
      end
    RUBY
    expect([result.stdout, result.stderr]).to eq(["404 200 block required", ""])
  end
end
