# frozen_string_literal: true

require "memprof/web"
require "rack"

RSpec.describe "the reference graph of Memprof::Web" do
  include WebBrowser

  before { needs_neighbours }

  let(:app) { web_app(cache_dump) }
  let(:heap) { Memprof::Heap.open(cache_dump) }
  let(:store) { heap.where("class = Hash").max_by(&:retained).address }
  let(:path) { "/heaps/1/graph/#{store}" }

  # It takes an object, so that it can't be asked without one.
  def needs_neighbours
    heap.ask(:neighbours, of: 0)
  rescue ArgumentError
    skip "this build does not answer neighbours"
  end

  def json(path) = ask(app, path.sub(/(\?|\z)/, '.json\1')).json

  def sessions = heap.where("class = Session")

  it "has what refers to an object, and what it refers to" do
    data = json(path)
    by_level = data[:nodes].group_by { |node| node[:level] }
    expect(data[:nodes].first).to include(address: store, level: 0, expanded: true, more_references: 1992)
    expect(by_level[-1].map { |node| node[:text] }).to include("module Sessions")
    expect(by_level[1].map { |node| node[:class] }.uniq).to eq(["Session"])
    expect(by_level[2].map { |node| node[:class] }.uniq).to contain_exactly("Array", "String")
    labels = data[:edges].map { |edge| edge[:label] }
    expect(labels).to include("STORE", "@pages", "@visitor")
  end

  it "draws each object as a link, with its references" do
    page = ask(app, path)
    data = json(path)
    addresses = data[:nodes].filter_map { |node| node[:address] }
    expect(page.links).to include(*addresses.map { |address| "/heaps/1/objects/#{address}" })
    expect(page.body.scan('<path d="M').size).to eq(data[:edges].size + 1)
    expect(page.body).to include(">@visitor</text>", ">+1,992</text>")
  end

  it "expands an object, and keeps what was expanded" do
    before = json(path)
    array = before[:nodes].find { |node| node[:level] == 2 && node[:class] == "Array" }
    target = ask(app, path).links.find { |link| link.end_with?("#at-#{array[:address]}") }
    expect(target).to start_with("#{path}?expand=#{array[:address]}#")
    after = json(target[/\A[^#]*/])
    expect(after[:nodes].size).to eq(before[:nodes].size + 8)
    expect(after[:nodes].map { |node| node[:level] }.max).to eq(3)
    other = after[:nodes].find { |node| !node[:expanded] && node[:level] == 2 && node[:class] == "Array" }
    again = ask(app, target[/\A[^#]*/]).links.find { |link| link.end_with?("#at-#{other[:address]}") }
    expect(again).to include("expand=#{array[:address]}%2C#{other[:address]}")
  end

  it "is bounded" do
    expect(json("#{path}?limit=5")[:nodes].size).to eq(5)
    answer = ask(app, "#{path}?expand=#{(["0x1"] * 2).join(",")}")
    expect([answer.status, answer.body]).to match([400, /no object has the address 0x1/])
    many = sessions.first(13).map(&:address).join(",")
    expect(ask(app, "#{path}?expand=#{many}").body).to include("at most 12 objects can be expanded")
  end

  it "gives what is seen to other programs" do
    data = json(path)
    answer = ask(app, "#{path}?format=dot")
    expect(answer.headers["content-disposition"]).to eq(%(attachment; filename="#{store}.dot"))
    expect(answer.body.scan(/^  n\d+ \[label/).size).to eq(data[:nodes].count { |node| node[:address] })
    expect(answer.body).to include("Session", '[label="@visitor"]')
    gml = ask(app, "#{path}?format=gml")
    expect(gml.body).to start_with("Creator \"memprof\"\ngraph\n[")
    expect(ask(app, "#{path}?format=png").status).to eq(400)
  end

  it "lays objects out in columns, without one upon the other" do
    data = json(path)
    layers = Memprof::Web::Layers.new(data[:nodes], data[:edges])
    places = data[:nodes].to_h { |node| [node[:id], layers[node[:id]]] }
    expect(places.values.uniq.size).to eq(places.size)
    columns = data[:nodes].group_by { |node| places[node[:id]].first }
    expect(columns.each_value.map { |nodes| nodes.map { |node| node[:level] }.uniq.size }.uniq).to eq([1])
    tops = places.values.group_by(&:first).each_value.map { |column| column.map(&:last).sort }
    steps = tops.flat_map { |column| column.each_cons(2).map { |one, other| other - one } }
    expect(steps.min).to be >= Memprof::Web::Layers::HEIGHT
    expect(places.values.map(&:first).max).to be < layers.width
    expect(places.values.map(&:last).max).to be < layers.height
  end
end
