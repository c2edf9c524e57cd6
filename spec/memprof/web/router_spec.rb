# frozen_string_literal: true

require "memprof/web"

RSpec.describe Memprof::Web::Router do
  def page(*routes)
    Class.new(Memprof::Web::Page) { define_singleton_method(:routes) { routes } }
  end

  let(:show) { page(["GET", "/heaps/:heap/objects/:address", nil]) }
  let(:overview) { page(["GET", "/heaps/:heap/", nil], ["POST", "/heaps/:heap/close", :close]) }
  let(:router) { described_class.new([show, overview]) }

  it "finds a page by its path, and names the parts" do
    match = router.find("GET", "/heaps/2/objects/0x7f")
    expect(match.to_a).to eq([show, { heap: "2", address: "0x7f" }, nil, nil])
  end

  it "takes parts apart before it decodes them" do
    expect(router.find("GET", "/heaps/2/objects/a%2Fb%20%C3%A9").captures[:address]).to eq("a/b é")
  end

  it "knows the JSON of each page" do
    expect(router.find("GET", "/heaps/2.json").to_a).to eq([overview, { heap: "2" }, "json", nil])
    expect(router.find("GET", "/heaps/2").page).to be(overview)
  end

  it "knows the other exports of each page, which change nothing" do
    %w[csv md svg].each do |format|
      expect(router.find("GET", "/heaps/2.#{format}").to_a).to eq([overview, { heap: "2" }, format, nil])
      expect { router.find("POST", "/heaps/2/close.#{format}") }.to raise_error(Memprof::Web::NotFound)
    end
  end

  it "does not mistake one method for another" do
    expect(router.find("POST", "/heaps/2/close").to_a).to eq([overview, { heap: "2" }, nil, :close])
    expect { router.find("GET", "/heaps/2/close") }.to raise_error(Memprof::Web::NotFound)
    expect { router.find("DELETE", "/heaps/2/") }.to raise_error(Memprof::Web::NotFound)
  end

  it "finds nothing for what is no text, nor for more than a page" do
    ["/heaps/%FF/", "/heaps/2/objects/a/b", "/heaps/2/\n", "//heaps/2"].each do |path|
      expect { router.find("GET", path) }.to raise_error(Memprof::Web::NotFound), path
    end
  end
end
