# frozen_string_literal: true

require "json"
require "tmpdir"

# Files with known numbers of objects and methods, required in processes of their own.
RSpec.describe "memprof boot" do
  around { |example| Dir.mktmpdir { |path| Dir.chdir(path) { example.run } } }

  def files(sources)
    sources.each do |name, source|
      FileUtils.mkdir_p(File.dirname(name))
      File.write(name, source)
    end
  end

  def methods(count)
    (1..count).map { |number| "def m#{number}(x) = x + #{number}\n" }.join
  end

  def flatten(file)
    [file, *file["requires"].flat_map { |below| flatten(below) }]
  end

  # The files by their names, from the JSON of the command.
  def measure(*arguments, env: {})
    result = run_memprof(*arguments, "--json", "--output", "out.json", *yield,
      env: { "RUBYLIB" => Dir.pwd }.merge(env))
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    tree = JSON.parse(File.read("out.json"))
    [tree, [tree["boot"], *tree["after_boot"]].flat_map { |file| flatten(file) }.to_h { |file|
      [File.basename(file["path"] || file["name"]), file]
    }]
  end

  it "gives each file its own share, regardless of what requires it" do
    files("one.rb" => "require 'big'\n", "big.rb" => "class Big\n#{methods(5000)}end\n",
      "ten.rb" => "A = Array.new(10) { Object.new }\n", "sixty.rb" => "B = Array.new(60) { Object.new }\n",
      "all.rb" => <<~RUBY)
        require "one"
        require_relative "ten"
        Thread.new { load "./sixty.rb" }.join
        begin
          require "gone"
        rescue LoadError
          $LOAD_PATH << "later"
        end
        require "gone"
        require "one"
      RUBY
    files("later/gone.rb" => "C = 1\n")
    tree, found = measure("require") { ["./all.rb"] }

    expect(found["one.rb"]["self"]).to include("code_objects" => 0)
    expect(found["one.rb"]["self"]["retained_objects"]).to be < 50
    # The code of the file and of the class body may be on the stack still.
    expect(found["big.rb"]["self"]).to match(a_hash_including("code_objects" => a_value_between(5000, 5002)))
    objects = %w[sixty.rb ten.rb].map { |name| found[name]["self"]["retained_objects"] }
    expect(objects.reduce(:-)).to be_between(45, 60)
    # Where the VM enlarges its list of loaded files, that belongs to the file that was being loaded.
    expect(found["sixty.rb"]["self"]["retained_bytes"]).to be > 60 * 40
    expect(found.values_at("sixty.rb", "ten.rb", "big.rb").map { |file|
             file["kind"]
           }).to eq(%w[load require require])
    expect(found["gone.rb"]["requires"]).to eq([])
    expect(found["all.rb"]["requires"].map { |file| [file["name"], file["loaded"]] })
      .to include(["gone", false], ["gone", true])
    sums = flatten(tree["boot"]).map { |file| file["self"]["retained_bytes"] }
    expect(tree["total"]["retained_bytes"]).to eq(sums.sum).and eq(tree["boot"]["total"]["retained_bytes"])
    expect(tree["boot"]["requires"].first["name"]).to end_with("/all.rb")
  end

  it "counts the code that Memprof.iseqs finds in the file" do
    files("some.rb" => "class Some\n#{methods(300)}end\n", "app.rb" => <<~RUBY)
      require "memprof"
      require "some"
      GC.start
      code = Memprof.iseqs(gc: true).by(:file).find { |group| group.name.end_with?("/some.rb") }
      File.write("oracle", [code.count, code.memsize].join(" "))
    RUBY
    _, found = measure("boot") { ["--", RbConfig.ruby, "-I#{ChildRuby::LIB}", "app.rb"] }
    count, bytes = File.read("oracle").split.map(&:to_i)
    code = found["some.rb"]["self"]
    expect(code["code_objects"]).to be_within(2).of(count)
    expect(code["code_bytes"]).to be_within(3000).of(bytes)
  end

  it "gives code from the cache of bootsnap to its file" do
    # For who happens to have it: bin/setup does not install it.
    reason = Servers.obstacle(nil, "bootsnap", nil)
    skip reason if reason
    files("some.rb" => "class Some\n#{methods(300)}end\n", "app.rb" => <<~RUBY)
      require "msgpack"
      require "bootsnap"
      Bootsnap.setup(cache_dir: ENV["CACHE"], development_mode: false, load_path_cache: true,
        compile_cache_iseq: true, compile_cache_yaml: false, compile_cache_json: false) if ENV["CACHE"]
      require "some"
    RUBY
    boot = ->(env) { measure("boot", env: env) { ["--", RbConfig.ruby, "app.rb"] }.last["some.rb"]["self"] }
    code = %w[code_objects code_bytes]
    plain = boot.call({}).slice(*code)
    2.times do # the first run writes the cache, the second reads it
      expect(boot.call("CACHE" => File.expand_path("cache")).slice(*code)).to eq(plain)
      expect(Dir["cache/**/*"].select { |path| File.file?(path) }).not_to be_empty
    end
  end

  it "distinguishes what is autoloaded, and what is loaded after the boot" do
    files("lib/lazy.rb" => "module Lazy; end", "lib/late.rb" => "L = 1", "lib/eager.rb" => "require 'set'",
      "config/environment.rb" => "class Object; autoload :Lazy, 'lazy'; end; require 'eager'; Lazy",
      "app.rb" => "require './config/environment'\nrequire 'late'\nexit 3")
    environment = { "RUBYLIB" => "#{Dir.pwd}/lib", "CUT_OFF" => "0" }
    stdout, stderr, status = run_memprof("boot", "--limit", "1", "--", RbConfig.ruby, "app.rb",
      env: environment)

    expect([stderr, status.exitstatus]).to eq(["", 3])
    boot, after = stdout.split("Loaded after boot: 1 file")
    expect(boot).to match(/^\d+ files? added .* KiB in .* objects, .* of it code; .*\n +Total +Self +Obj/)
    expect(boot).to match(/ app\.rb \(program\)$/).and match(%r{ lib/eager\.rb$})
    expect(boot).to match(%r{ lib/lazy\.rb \(autoload\)$})
    expect(after).to match(%r{ lib/late\.rb$}).and match(/^By gem\n/).and match(/^By file\n.*\n.*\n\z/)
    expect(boot).not_to include("late.rb")
  end

  it "is transparent to the program: frames, arguments, errors, forks, threads that are killed" do
    files("a.rb" => "A = caller_locations.map(&:path).grep_v(/\\A<internal:/)", "thrown.rb" => "throw :done",
      "raised.rb" => "raise 'of raised.rb'", "wrapped.rb" => "W = 1", "app.rb" => <<~'RUBY')
        require "pathname"
        require Pathname("a.rb").expand_path
        catch(:done) { load "./thrown.rb" }
        says = [["require", 3], ["require_relative", 3], ["load", 3], ["require_relative", "gone"]].map do |name, argument|
          send(name, argument)
        rescue TypeError, LoadError => e
          e.class
        end
        raised = begin
          require_relative "raised"
        rescue => e
          e.message
        end
        load "./wrapped.rb", true
        warn("here", uplevel: 0)
        Process.wait(fork { require "set"; exit!(4) })
        Thread.new { sleep }.tap { |thread| Thread.pass until thread.stop? }.kill.join
        p A, says, raised, $?.exitstatus, defined?(W), method(:require).owner, require("a.rb"), Kernel.require("erb")
        p respond_to?(:require), Object.new.respond_to?(:load)
      RUBY
    plain = run_ruby("app.rb", ruby_args: ["-I."])
    stdout, stderr, status = run_memprof("boot", "-o", "out.txt", "--min-size", "0", "--", RbConfig.ruby,
      "-I#{ChildRuby::LIB}", "-I.", "app.rb")
    expect([stdout, stderr, status.exitstatus]).to eq([plain.stdout, plain.stderr, 0])
    expect(File.read("out.txt")).to include("./thrown.rb (not loaded; load)").and include("a.rb")
  end

  describe "when Kernel#require gets its definition in C back" do
    # As Bundler does it with RubyGems that cannot be asked for less.
    reversal = <<~RUBY
      [Kernel.singleton_class, Kernel].each do |kernel|
        kernel.remove_method(:require)
        kernel.define_method(:require, kernel.instance_method(:gem_original_require))
        kernel.send(kernel == Kernel ? :private : :public, :require)
      end
    RUBY

    before { files("one.rb" => "require 'two'", "two.rb" => "T = Array.new(60) { Object.new }") }

    def below(found)
      found["one.rb"]["requires"].map { |file| File.basename(file["path"]) }
    end

    {
      "by bundler/setup" => "require 'bundler/setup'",
      "after Zeitwerk" => "require 'zeitwerk'; #{reversal}",
      "before Zeitwerk" => "gem 'zeitwerk'; #{reversal}; require 'zeitwerk'",
      "twice" => "#{reversal}; #{reversal}"
    }.each do |how, source|
      it "still has the tree, #{how}, and stays transparent" do
        reason = how.include?("Zeitwerk") && Servers.obstacle(nil, "zeitwerk", nil)
        skip reason if reason
        files("Gemfile" => "source \"https://rubygems.org\"\n", "app.rb" => <<~RUBY)
          #{source}
          Kernel.require "one"
          abort "public" if Object.new.respond_to?(:require)
        RUBY
        bundler = { "BUNDLE_GEMFILE" => "#{Dir.pwd}/Gemfile", "BUNDLE_FROZEN" => nil }
        warnings = how.include?("Zeitwerk") ? [] : ["-w"]
        _, found = measure("boot", env: bundler) { ["--", RbConfig.ruby, *warnings, "app.rb"] }
        expect(below(found)).to eq(["two.rb"])
        expect(found["two.rb"]["self"]["retained_objects"]).to be_between(60, 90)
      end
    end

    it "warns if the hook is lost" do
      files("app.rb" => <<~RUBY)
        require "one"
        Kernel.define_method(:require) { |path| gem_original_require(path) }
        require "set"
      RUBY
      _, stderr, = run_memprof("boot", "-o", "out.txt", "--", RbConfig.ruby, "app.rb",
        env: { "RUBYLIB" => Dir.pwd })
      expect(stderr).to eq("memprof: Kernel#require was replaced after two; " \
                           "later files count as part of their requirers\n")
    end
  end

  it "lists gems by what they brought themselves, and the application as one of them" do
    files("gems/gems/big-1.0/lib/big.rb" => "B = Array.new(5000) { Object.new }",
      "gems/gems/outer-1.0/lib/outer.rb" => "require 'big'",
      "lib/own.rb" => "O = Array.new(900) { Object.new }",
      "more.rb" => "M = Array.new(900) { Object.new }",
      "app.rb" => "require './lib/own'\nrequire './more'\nrequire 'outer'\n")
    path = Dir["gems/gems/*/lib"].map { |lib| File.expand_path(lib) }.join(":")
    tree, = measure("boot", env: { "RUBYLIB" => path }) { ["--", RbConfig.ruby, "app.rb"] }
    gems = tree["gems"].map { |gem| gem.values_at("name", "files") }
    expect(gems).to eq([["big-1.0", 1], ["app", 2], ["outer-1.0", 1]])
  end

  it "draws flame graphs" do
    files("outer.rb" => "require 'inner'\nO = 'o' * 100", "inner.rb" => "I = Array.new(100) { 'i' * 100 }")
    environment = { "RUBYLIB" => Dir.pwd }
    folded = run_memprof("require", "-f", "collapsed", "./outer.rb", env: environment).stdout
    expect(folded).to match(/^memprof require;outer\.rb;inner\.rb \d{4,}$/)
    drawing = JSON.parse(run_memprof("require", "-f", "speedscope", "./outer.rb", env: environment).stdout)
    profile = drawing["profiles"].first
    expect(profile.values_at("unit", "endValue")).to eq(["bytes", profile["weights"].sum])
    names = drawing["shared"]["frames"].map { |frame| frame["name"] }
    expect(profile["samples"].map { |stack| stack.map { |number| names[number] }.join(";") })
      .to include("memprof require;outer.rb;inner.rb")
  end

  it "says what is wrong" do
    expect(run_memprof("boot").stderr).to start_with("memprof: no command given, and no Rails app")
    expect(run_memprof("require").stderr).to start_with("memprof: no gem or file given")
    expect(run_memprof("boot", "--min-size", "much",
      "true").stderr).to start_with('memprof: invalid --min-size "much"; ')
    stderr = run_memprof("boot", "true", env: { "CUT_OFF" => "x" }).stderr
    expect(stderr).to start_with('memprof: invalid CUT_OFF "x"; expected a number of MiB')
    _, stderr, status = run_memprof("boot", "--", "true")
    expect([stderr[/\Amemprof: no numbers/], status.exitstatus]).to eq(["memprof: no numbers", 1])
    _, stderr, status = run_memprof("require", "no-such-gem")
    expect([stderr.lines.first, status.exitstatus])
      .to eq(["memprof: cannot load no-such-gem: cannot load such file -- no/such/gem\n", 1])
  end
end
