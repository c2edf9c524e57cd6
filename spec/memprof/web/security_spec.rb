# frozen_string_literal: true

require "memprof/web"
require "rack"

RSpec.describe Memprof::Web::Security do
  include WebBrowser

  let(:app) { web_app(cache_dump, hosts: described_class::Hosts.new(["box.example"])) }

  it "answers to this machine's names alone" do
    ["127.0.0.1:7000", "localhost:7000", "LOCALHOST", "[::1]:7000", "10.0.0.7", "box.example"].each do |host|
      expect(ask(app, "/heaps", headers: { "Host" => host }).status).to eq(200), host
    end
    ["evil.example:7000", "localhost.evil.example", "127.0.0.1.evil.example", "", "a"].each do |host|
      expect(ask(app, "/heaps", headers: { "Host" => host }).status).to eq(403), host
    end
  end

  it "does what a page of its own asks for, and no other" do
    refused = [{ "Sec-Fetch-Site" => "cross-site" }, { "Sec-Fetch-Site" => "same-site" }, {},
      { "Origin" => "http://evil.example" }, { "Origin" => "null" }, { "Origin" => "http://127.0.0.1:8000" },
      { "Sec-Fetch-Site" => "none" }, { "Authorization" => "Basic YTpi" }]
    refused.each do |headers|
      expect(ask(app, "/heaps/1/close", method: "POST", headers: headers).status).to eq(403), headers.inspect
    end
    expect(app.heaps.map(&:state)).to eq([:open])

    answer = ask(app, "/heaps/1/close", method: "POST", headers: { "Sec-Fetch-Site" => "same-origin" })
    expect([answer.status, answer.location, app.heaps.map(&:state)]).to eq([303, "/heaps", [:idle]])
  end

  it "takes the origin of a browser that says no more" do
    answer = ask(app, "/heaps/1/close", method: "POST", headers: { "Origin" => "http://127.0.0.1:7000" })
    expect(answer.status).to eq(303)
  end

  it "lets a page run nothing that did not come with it" do
    ["/heaps/1/", "/nowhere", "/heaps/1.json"].each do |path|
      headers = ask(app, path).headers
      policy = headers["content-security-policy"]
      expect(policy).to start_with("default-src 'none'; script-src 'nonce-")
      expect(policy).not_to match(/unsafe|https?:|\*/)
      expect(headers).to include("x-content-type-options" => "nosniff", "x-frame-options" => "DENY",
        "referrer-policy" => "same-origin", "cache-control" => "no-store")
    end
    nonces = Array.new(3) { ask(app, "/heaps").headers["content-security-policy"][/nonce-([^']+)/, 1] }
    expect(nonces.uniq.size).to eq(3)
    page = ask(app, "/heaps/1/")
    nonce = page.headers["content-security-policy"][/nonce-([^']+)/, 1]
    expect(page.body.scan(/<(?:script|link rel="stylesheet")[^>]*>/)).to all(include(%(nonce="#{nonce}")))
    expect(page.body).not_to match(/ style=| on\w+=/)
  end

  it "serves the files of web/assets alone" do
    paths = ["/assets/../views/layout.erb", "/assets/..%2f..%2fmemprof.gemspec", "/assets/%2e%2e/x",
      "/assets/", "/assets/style.css", "/assets//etc/passwd"]
    paths.each { |path| expect(ask(app, path).status).to eq(404), path }
  end

  it "reveals of an internal error no more than where it is" do
    page = Class.new(Memprof::Web::Page) do
      define_singleton_method(:routes) { [["GET", "/broken", nil]] }
      def data = params.fetch("secret").no_such_method
    end
    gate = Memprof::Web::Gate::Token.new("correct horse")
    app = web_app(gate: gate, router: Memprof::Web::Router.new([page]))
    headers = { "Authorization" => "Bearer correct horse" }
    answer = ask(app, "/broken?secret=hush", headers: headers)
    expect([answer.status, answer.body]).to match([500, /NoMethodError: undefined method .*security_spec/])
    expect(answer.body).not_to match(/hush|horse/)
    expect([gate, app].map(&:inspect).join).not_to include("correct horse")
    answer = ask(app, "/broken", headers: headers)
    expect([answer.status, answer.body]).to match([500, /KeyError: key not found: "secret"/])
  end

  it "ignores invalid parameters" do
    ["/heaps?a=%FF", "/heaps?a=é".b, "/heaps?#{"a" * 20_000}"].each do |target|
      expect(ask(app, target).status).to eq(400), target[0, 30]
    end
  end
end

RSpec.describe Memprof::Web::Gate::Token do
  include WebBrowser

  let(:gate) { described_class.new }
  let(:app) { web_app(cache_dump, gate: gate) }

  def cookie(answer)
    { "Cookie" => "other=1; #{answer.headers["set-cookie"][/\A[^;]+/]}" }
  end

  it "admits no one without the token" do
    targets = ["/", "/heaps/1.json", "/nowhere", "/assets/x", "/heaps?token=wrong", "/heaps?token="]
    targets.each { |target| expect(ask(app, target).status).to eq(403), target }
    headers = { "Authorization" => "Bearer #{gate.token}" } # made up here: for one browser
    expect(ask(app, "/", headers: headers).status).to eq(403)
  end

  it "makes a cookie of it, and takes it out of the address" do
    answer = ask(app, "/heaps/1/?a=b&token=#{gate.token}&c=d")
    expect([answer.status, answer.location]).to eq([303, "/heaps/1/?a=b&c=d"])
    expect(answer.headers["set-cookie"])
      .to match(%r{\Amemprof_\h+=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict\z})
    expect(answer.headers["set-cookie"]).not_to include(gate.token)
    expect(ask(app, "/heaps", headers: cookie(answer)).status).to eq(200)
  end

  it "opens once" do
    first = ask(app, "/?token=#{gate.token}")
    expect(ask(app, "/?token=#{gate.token}").status).to eq(403)
    expect(ask(app, "/?token=#{gate.token}", headers: cookie(first)).status).to eq(303)
  end

  it "leads to no other host" do
    target = "//evil.example/?token=#{gate.token}"
    expect(ask(app, target).location).to eq("/evil.example/")
  end

  it "keeps to where it is mounted" do
    answer = ask(app, "/heaps?token=#{gate.token}", script_name: "/memprof")
    expect(answer.location).to eq("/memprof/heaps")
    expect(answer.headers["set-cookie"]).to include("; Path=/memprof;")
  end

  it "takes a token that the user chose every time, and from scripts" do
    app = web_app(cache_dump, gate: described_class.new("correct horse"))
    2.times { expect(ask(app, "/?token=correct+horse").status).to eq(303) }
    headers = { "Authorization" => "Bearer correct horse" }
    expect(ask(app, "/heaps/1.json", headers: headers).status).to eq(200)
    expect(ask(app, "/heaps/1.json", headers: { "Authorization" => "Bearer wrong" }).status).to eq(403)
    expect(ask(app, "/heaps/1/close", method: "POST", headers: headers).status).to eq(303)
  end
end
