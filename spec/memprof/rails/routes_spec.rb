# frozen_string_literal: true

require "memprof"

# Rack comes with Rails, or with a server.
RSpec.describe "Memprof::Rails::Routes" do
  before(:all) do
    require "memprof/rails/routes"
  rescue LoadError
    skip "Rack is not installed"
  end

  # As ActionDispatch describes a route.
  route = Struct.new(:verb, :pattern, :required_parts, :internal, :dispatch) do
    def path = Struct.new(:spec).new(pattern)
    def dispatcher? = dispatch
  end
  # As a Rails application, which answers by a block.
  app = Struct.new(:answer, :list, :ssl) do
    def call(env) = answer.call(env)
    def config = Struct.new(:force_ssl).new(ssl)
    def routes = Struct.new(:routes).new(list)
  end

  define_method(:routes) do |list = [], ssl: false, &answer|
    Memprof::Rails::Routes.new(app.new(answer, list, ssl))
  end
  define_method(:route) do |verb, pattern, parts: [], internal: false, dispatcher: true|
    route.new(verb, pattern, parts, internal, dispatcher)
  end

  it "finds the GET routes of the application that need no parameter" do
    list = [
      route("GET", "/"), route("GET", "/orders(.:format)"), route("", "/any"), route("GET|HEAD", "/head"),
      route("POST", "/orders(.:format)"), route("GET", "/orders/:id(.:format)", parts: [:id]),
      route("GET", "/rails/info", internal: true), route("GET", "/memprof", dispatcher: false),
      route("PATCH|PUT", "/put")
    ]
    expect(routes(list).paths).to eq(["/", "/orders", "/any", "/head"])
  end

  it "leaves out what is optional, also within each other, and names a path once" do
    patterns = ["/a(/:page(/:size))(.:format)", "/a(.:format)", "(/:l)/b"]
    list = patterns.map { |pattern| route("GET", pattern) }
    expect(routes(list).paths).to eq(["/a", "/b"])
  end

  it "has an application load its routes first" do
    lazy = app.new(nil, [])
    added = route("GET", "/late")
    lazy.define_singleton_method(:reload_routes_unless_loaded) { list << added }
    expect(Memprof::Rails::Routes.new(lazy).paths).to eq(["/late"])
  end

  it "sends a GET request of this machine, reads the body and closes it" do
    read = []
    body = Object.new
    body.define_singleton_method(:each) { |&block| ["abc", "de"].each { |part| read << block.call(part) } }
    body.define_singleton_method(:close) { read << :closed }
    seen = nil
    status = routes { |env|
      seen = env
      [201, {}, body]
    }.request("/orders?page=2")
    expect([status, read]).to eq([201, [3, 2, :closed]])
    expect(seen).to include("REQUEST_METHOD" => "GET", "PATH_INFO" => "/orders", "QUERY_STRING" => "page=2",
      "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "localhost", "rack.url_scheme" => "http")
  end

  it "asks by HTTPS where the application insists on that" do
    seen = nil
    routes(ssl: true) { |env|
      seen = env
      [200, {}, []]
    }.request("/")
    expect(seen).to include("rack.url_scheme" => "https", "HTTPS" => "on")
  end

  it "closes the body also if reading it raises" do
    closed = false
    body = Object.new
    body.define_singleton_method(:each) { raise "broken" }
    body.define_singleton_method(:close) { closed = true }
    expect { routes { [200, {}, body] }.request("/") }.to raise_error("broken")
    expect(closed).to be(true)
  end

  it "averages what requests allocate, and adds up what they retain" do
    retained = []
    calls = Hash.new(0)
    measured = routes do |env|
      path = env["PATH_INFO"]
      calls[path] += 1
      Array.new(path == "/much" ? 1000 : 10) { Object.new }
      retained << "text".dup if path == "/keeps"
      [200, {}, []]
    end
    costs = measured.costs(["/few", "/keeps", "/much"], 10)
    much, *others = costs
    expect(calls.values).to eq([13, 13, 13])
    expect([much.path, much.status]).to eq(["/much", 200])
    expect(others.map(&:path)).to contain_exactly("/few", "/keeps")
    expect(much.objects).to be_between(1000, 1200)
    few = costs.find { |cost| cost.path == "/few" }
    expect(much.objects - few.objects).to be_within(2).of(990)
    keeps = costs.find { |cost| cost.path == "/keeps" }
    expect(keeps.retained - few.retained).to be_between(10, 12)
  end

  it "shows errors and redirects last" do
    answers = { "/page" => 200, "/moved" => 302, "/gone" => 404 }
    costs = routes { |env|
      Array.new(500) { Object.new } unless env["PATH_INFO"] == "/page"
      raise NotImplementedError if env["PATH_INFO"] == "/raises"

      [answers.fetch(env["PATH_INFO"]), {}, []]
    }.costs(["/moved", "/raises", "/gone", "/page"], 2)
    expect(costs.first).to have_attributes(path: "/page", status: 200)
    expect(costs.drop(1).map { |cost| [cost.path, cost.status] })
      .to contain_exactly(["/moved", 302], ["/gone", 404], ["/raises", "NotImplementedError"])
    expect(costs.map { |cost| Memprof::Rails::Routes.page?(cost.status) }).to eq([true, false, false, false])
  end

  it "prints a table" do
    cost = Struct.new(:path, :status, :objects, :bytes, :retained, :retained_bytes)
    table = routes.table([cost.new("/orders", 200, 1159, 71_065, 0, 0),
      cost.new("/history", "KeyError", 660, 46_592, 20, 20_787)])
    expect(table.to_text).to eq(<<~TEXT)
      Request     Status  Objects  Allocated
      /orders        200    1,159   69.4 KiB
      /history  KeyError      660   45.5 KiB  20 objects (20.3 KiB) retained by all
    TEXT
  end
end
