# frozen_string_literal: true

require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe "the heaps of Memprof::Web" do
  include WebBrowser

  let(:app) { web_app(cache_dump) }

  def post(path) = ask(app, path, method: "POST", headers: { "Sec-Fetch-Site" => "same-origin" })

  def row = ask(app, "/heaps.json").json[:heaps].first

  # What is there when nothing is pending any more.
  def come(path)
    eventually(path) { ask(app, path).then { |answer| answer unless answer.status == 202 } }
  end

  # The words of the buttons, and what they ask for.
  def buttons
    ask(app, "/heaps").body.scan(%r{<button formaction="([^"]*)"[^>]*>([^<]*)</button>}).to_h(&:reverse)
  end

  it "are closed and opened again" do
    objects = row[:objects]
    expect([row[:state], buttons]).to eq(["open", { "Close" => "/heaps/1/close" }])
    expect(post("/heaps/1/close").location).to eq("/heaps")
    expect(row).to include(state: "idle", objects: objects)
    expect(ask(app, "/heaps").body).to include("<td>closed</td>", 'aria-label="Open cache-1.memprof"')
    expect(buttons).to eq("Open" => "/heaps/1/open", "Forget" => "/heaps/1/forget")
    expect([post("/heaps/1/open").location, row[:state]]).to eq(["/heaps/1/", "idle"])
    expect([come("/heaps/1.json").json[:overview][:objects][:count], row[:state]]).to eq([objects, "open"])
  end

  it "are forgotten, while the dump stays" do
    post("/heaps/1/close")
    expect(post("/heaps/1/forget").location).to eq("/heaps")
    expect([ask(app, "/heaps.json").json, File.exist?(cache_dump)]).to eq([{ heaps: [] }, true])
    ["close", "open", "forget"].each { |act| expect(post("/heaps/1/#{act}").status).to eq(404), act }
    expect(ask(app, "/heaps/1/open").status).to eq(404) # no POST
  end

  it "are marked on each page while they are closed, and not the first that is shown" do
    app.heaps.add(cache_dump(2))
    come("/heaps/2/")
    post("/heaps/1/close")
    closed = ask(app, "/heaps/2/").body.scan(%r{<a href="([^"]*)" class="closed" title="([^"]*)"})
    expect(closed).to match([["/heaps/1/", /\A#{cache_dump}\nclosed; opens/]])
    expect(ask(app, "/").location).to eq("/heaps/2/")
  end

  it "are tried again where the dump could not be read" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "late.memprof")
      app.heaps.forget(1)
      app.heaps.add(path)
      expect([come("/heaps/2/").status, row[:state], row[:error]]).to match([500, "failed", /No such file/])
      expect(buttons).to eq("Try again" => "/heaps/2/open", "Forget" => "/heaps/2/forget")
      FileUtils.cp(cache_dump, path)
      post("/heaps/2/open")
      expect(come("/heaps/2/").status).to eq(200)
      expect(row).to include(state: "open", error: nil)
    end
  end
end
