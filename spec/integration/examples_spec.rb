# frozen_string_literal: true

# The programs in examples/ as a reader runs them.
RSpec.describe "The examples" do
  examples = Dir[File.join(ChildRuby::ROOT, "examples", "*.rb")].sort

  it("are there") { expect(examples).not_to be_empty }

  examples.each do |file|
    it "run to their end: #{File.basename(file)}" do
      stdout, stderr, status = run_ruby(file)
      expect(stderr).to eq("")
      expect(status).to be_success
      expect(stdout).not_to be_empty
    end
  end

  describe "trace_queries.rb, with a server" do
    before(:all) { need(server: :postgres, client: "pg") }

    it "shows which page asks too often" do
      file = File.join(ChildRuby::ROOT, "examples/trace_queries.rb")
      stdout, stderr, status = run_ruby(file, env: Servers[:postgres].environment)
      expect(stderr).to eq("")
      expect(status).to be_success
      # Requests, and queries in all.
      expect(stdout.scan(%r{^GET (/\w+) +(\d+) +(\d+)}))
        .to eq([%w[/shelf 10 410], %w[/joined 10 10]])
    end
  end

  describe "that leak native memory" do
    %w[leak_malloc leak_extension leak_eval].each do |name|
      it "have their leak on the first line of memprof malloc: #{name}.rb" do
        skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux")
        file = File.join(ChildRuby::ROOT, "examples/#{name}.rb")
        leak = File.foreach(file).find_index { |line| line.include?("# the leak") } + 1
        stdout, stderr, status = run_memprof("malloc", "--limit", "1", "--", RbConfig.ruby, file)
        expect(status).to be_success
        skip stdout if stdout.include?("This example needs")

        expect(stderr).to match(/^ *[\d.]+ MiB +[\d,]+ +[\d.]+ MiB +[\d,]+  \S*#{name}\.rb:#{leak}$/)
      end
    end
  end

  describe "leaky_app.rb, as bin/demo shows it" do
    let(:file) { File.join(ChildRuby::ROOT, "examples/leaky_app.rb") }
    let(:leak) { File.foreach(file).find_index { |line| line.match?(/@quotes\[.*\|\|=/) } + 1 }

    it "has its leak on the first line of what is retained" do
      stdout, stderr, status = run_memprof("run", "--no-internal", "--limit", "8", "--", RbConfig.ruby, file)
      expect(stderr).to eq("")
      expect(status).to be_success
      first = stdout[/^ *Retained +Objects.*\n(.*)$/, 1]
      expect(first).to match(/\b10,000\b.*String.*leaky_app\.rb:#{leak} in PriceBook#quote\z/)
    end
  end
end
