# frozen_string_literal: true

require "memprof/web"
require "rack"

RSpec.describe Memprof::Web do
  include WebBrowser

  let(:app) { web_app(cache_dump) }

  it "answers 404 to everyone where it is mounted without access rules" do
    ["/", "/heaps", "/assets/x"].each do |path|
      expect(ask(described_class, path, script_name: "/memprof").status).to eq(404)
    end
  end

  it "shows the first heap" do
    expect(ask(app, "/").location).to eq("/heaps/1/")
    expect(ask(web_app, "/").location).to eq("/heaps")
  end

  it "links to where it is mounted" do
    page = ask(app, "/heaps/1/", script_name: "/tools/memprof")
    expect(page.links.reject { |link| link.start_with?("/tools/memprof/", "#") }).to be_empty
  end

  it "says of each page what it says in JSON" do
    page = ask(app, "/heaps/1/")
    data = ask(app, "/heaps/1.json").json
    expect(page.headers["content-type"]).to eq("text/html; charset=utf-8")
    expect(page.body).to include(Memprof::Units.objects(data[:overview][:objects][:count]))
    expect(data.keys).to eq(%i[overview leaks slots tree])
    expect(data[:overview]).to eq(Memprof::Heap.open(cache_dump).overview(limit: 12))
  end

  it "shows the leak on its first page" do
    first = ask(app, "/heaps/1/").body[%r{<ol class="findings">.*?</li>}m]
    expect(first).to match(/1,000 Session instances retain .*, retained by Sessions::STORE -&gt; Hash\[\*\]/)
  end

  it "answers HEAD as GET, without a body" do
    answer = ask(app, "/heaps/1/", method: "HEAD")
    expect([answer.status, answer.body]).to eq([200, ""])
  end

  it "has errors in the form that was asked for" do
    expect(ask(app, "/heaps/9/").body).to include("no heap 9")
    answer = ask(app, "/heaps/9.json")
    expect([answer.status, answer.json]).to eq([404, { error: "no heap 9" }])
  end

  it "shows how far the opening is" do
    app.heaps.add(cache_dump(3), index: false)
    stub_const("Memprof::Web::Heaps::Entry::PATIENCE", 0)
    page = ask(app, "/heaps/2/")
    expect([page.status, page.headers["refresh"]]).to eq([202, "1"])
    expect(page.body).to include("<progress", "Opening cache-3.memprof")
    app.heaps.fetch(2).heap(patience: 30)
    expect(ask(app, "/heaps/2/").status).to eq(200)
  end

  it "lets browsers cache files by digest" do
    style = ask(app, "/heaps").body[%r{/assets/style-\h+\.css}]
    answer = ask(app, style)
    expect(answer.headers).to include("cache-control" => "public, max-age=31536000, immutable",
      "content-type" => "text/css; charset=utf-8")
    tag = answer.headers["etag"]
    [tag, "W/#{tag}", "\"other\", #{tag}", "*"].each do |tags|
      again = ask(app, style, headers: { "If-None-Match" => tags })
      expect([again.status, again.body]).to eq([304, ""])
    end
    expect(ask(app, style, headers: { "If-None-Match" => "\"other\"" }).status).to eq(200)
  end

  it "is small: page, style, script and icon together" do
    page = ask(app, "/heaps/1/")
    files = page.body.scan(%r{/assets/[\w.-]+}).uniq.map { |path| ask(app, path).body }
    expect([page.body, *files].sum(&:bytesize)).to be < 100 * 1024
  end
end
