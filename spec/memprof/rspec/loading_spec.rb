# frozen_string_literal: true

RSpec.describe "require \"memprof/rspec\"" do
  # A directory in which loading the file fails as if the gem were not installed.
  def without(feature)
    Dir.mktmpdir do |directory|
      path = File.join(directory, "#{feature}.rb")
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, "raise LoadError, 'cannot load such file -- #{feature}'")
      yield directory
    end
  end

  it "says clearly that RSpec is missing" do
    without("rspec/expectations") do |directory|
      result = run_ruby('require "memprof/rspec"', ruby_args: ["-I#{directory}"])
      expect(result).not_to be_success
      expect(result.stderr).to include("memprof/rspec needs RSpec, which cannot be loaded " \
        "(cannot load such file -- rspec/expectations): install the gem rspec")
    end
  end

  it "says clearly that Minitest is missing" do
    without("minitest") do |directory|
      result = run_ruby('require "memprof/minitest"', ruby_args: ["-I#{directory}"])
      expect(result).not_to be_success
      expect(result.stderr).to include("memprof/minitest needs Minitest, which cannot be loaded")
    end
  end

  it "loads neither with memprof itself" do
    result = run_ruby('require "memprof"; p defined?(RSpec), defined?(Minitest), defined?(Rack)')
    expect(result.stdout).to eq("nil\nnil\nnil\n")
  end

  it "works with rspec-expectations alone" do
    result = run_ruby(<<~RUBY)
      require "memprof/rspec"
      include RSpec::Matchers
      include Memprof::RSpec::Matchers
      expect { Object.new }.to allocate_at_most(1)
      begin
        expect { Object.new }.to allocate_at_most(0)
      rescue RSpec::Expectations::ExpectationNotMetError => error
        puts error.message.lines.first
      end
    RUBY
    expect(result.stdout).to eq("expected block to allocate no objects, but it allocated 1 object\n")
  end
end
