# frozen_string_literal: true

require "tmpdir"
require "memprof"
require "memprof/agent/labels"

RSpec.describe "The labels of the agent" do
  def labels(env = {}, settings: {}, program: "/srv/shop/bin/server.rb -x", root: "/nowhere")
    Memprof::Agent::Labels.new(settings, env: env, root: root, program: program)
  end

  it "have names for this process" do
    expect(labels.to_h).to eq(service: "server", release: nil, host: Etc.uname[:nodename],
      worker: Process.pid.to_s, pid: Process.pid)
  end

  it "take the service from the settings, the environment, Rails, or the program" do
    attributes = { "OTEL_RESOURCE_ATTRIBUTES" => "a=b, service.name = my%20shop%2C2 ,service.version=7" }
    expect(labels(attributes).service).to eq("my shop,2")
    both = attributes.merge("OTEL_SERVICE_NAME" => "till")
    expect(labels(both).service).to eq("till")
    expect(labels(both, settings: { service: "cart" }).service).to eq("cart")
    expect([labels(program: "-e").service, labels(program: "").service]).to eq(%w[ruby ruby])
    stub_const("Rails", double(application: stub_const("BookShop::Application", Class.new).new, root: nil))
    expect(labels.service).to eq("book_shop")
  end

  it "take the release from what the deployment says, in order" do
    Dir.mktmpdir do |root|
      File.write(File.join(root, "REVISION"), "3fe2a1\nmore\n")
      env = { "OTEL_RESOURCE_ATTRIBUTES" => "service.version=9" }
      expect(labels(env).release).to eq("9")
      expect(labels(env, root: root).release).to eq("3fe2a1")
      %w[HEROKU_SLUG_COMMIT GIT_SHA MEMPROF_RELEASE].each do |name|
        env = env.merge(name => name.downcase)
        expect(labels(env, root: root).release).to eq(name.downcase)
      end
      expect(labels(env, settings: { release: "5" }).release).to eq("5")
      expect(labels({ "GIT_SHA" => " " }).release).to be_nil
    end
  end

  it "do not wait for a pipe in the place of REVISION, and ignore a directory" do
    Dir.mktmpdir do |root|
      File.mkfifo(File.join(root, "REVISION"))
      expect(labels(root: root).release).to be_nil
      File.unlink(File.join(root, "REVISION"))
      Dir.mkdir(File.join(root, "REVISION"))
      expect(labels(root: root).release).to be_nil
    end
  end

  it "tell workers apart by the titles that servers give them" do
    titles = {
      "puma: cluster worker 3: 4711 [shop]" => "puma 3", "unicorn worker[2] -c config.rb" => "unicorn 2",
      "unicorn_rails worker[2]" => "unicorn 2", "pitchfork (gen:1) worker[0]" => "pitchfork 0",
      "sidekiq 6.4.1 shop [0 of 5 busy]" => "sidekiq #{Process.pid}",
      "puma: cluster worker" => Process.pid.to_s, "\xff" => Process.pid.to_s
    }
    expect(titles.keys.to_h { |title| [title, labels.worker(title)] }).to eq(titles)
  end

  it "are short, printable text" do
    found = labels({ "OTEL_SERVICE_NAME" => "a\e[2J\xff#{"b" * 300}", "GIT_SHA" => "a\nb" }).to_h
    expect(found[:service]).to start_with('a\e[2J\xFF').and have_attributes(size: 200)
    expect(found[:release]).to eq('a\nb')
  end
end
