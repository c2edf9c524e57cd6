# frozen_string_literal: true

# Traced requests and tracked allocations in a Chromium.
RSpec.describe "files of requests and allocations in a browser" do
  include PageReader
  include_context "with a browser"

  after { expect(@tab.watch.forget).to eq([]) if @tab }

  def visit(path) = tab.go("#{@stage.dumps}#{path}")

  def range = URI.decode_www_form(URI(tab.path).query).to_h

  # Requests that the list says it has.
  def requests = texts(".lead").first[/\A[\d,]+/].to_i

  it "show the part of the time over which the mouse is dragged" do
    visit("/traces/1?sort=objects&by=path")
    whole = tab.evaluate("Number(document.querySelector('.timeline').dataset.seconds)")
    all = requests
    expect(texts(".range .quiet")).to eq(["or drag over the timeline"])
    expect(tab.following("by dragging") { tab.drag(".timeline", 0.75, 0.25) }).to eq(200)
    expect(range).to include("sort" => "objects", "by" => "path")
    expect(range.values_at("from", "to").map(&:to_f))
      .to match([be_within(whole * 0.01).of(whole / 4), be_within(whole * 0.01).of(whole * 0.75)])
    expect(requests).to be_between(1, all - 1)
    expect(tab.evaluate("document.querySelectorAll('.timeline .outside').length")).to eq(2)
    tab.following("by dragging") { tab.drag(".timeline", 0.5, 1.2) }
    expect([range["to"], range["from"].to_f]).to match(["", be_within(whole * 0.01).of(whole / 2)])
    fill(".range input[name=to]", range["from"].to_s)
    tab.following("by Enter") { tab.press("Enter") }
    expect(range["to"]).to eq(range["from"])
    tab.follow(link("/^Whole timeline$/"))
    expect([tab.path, requests]).to eq(["/traces/1?sort=objects&by=path", all])
  end

  it "show stacks with one's own frames alone" do
    visit("/tracked/1/flame")
    names = "[...document.querySelectorAll('.icicle title')].map((one) => one.textContent.split('\\n')[0])"
    all = tab.evaluate(names)
    expect(all.join).to match(%r{rack-[\d.]+/lib}).and match(/app\.rb:\d+/)
    tab.follow(link("/^Hide frames of gems and Ruby$/"))
    own = tab.evaluate(names)
    expect(own.join).to match(/app\.rb:\d+/)
    expect(own.grep(%r{-[\d.]+/lib|ruby/lib|<internal:})).to eq([])
    tab.click(element(".icicle a", "/app\\.rb/"))
    tab.wait("zoom", "document.querySelectorAll('.icicle .above').length > 0")
    expect(tab.evaluate(names).grep(%r{-[\d.]+/lib})).to eq([])
    tab.follow(link("/^Show frames of gems and Ruby$/"))
    expect(tab.evaluate(names)).to eq(all)
  end

  it "lead from a bar to its request, as before" do
    visit("/traces/1")
    expect(tab.follow(".timeline a")).to eq(200)
    expect(tab.path).to match(%r{\A/traces/1/requests/\d+\z})
  end
end
