# frozen_string_literal: true

# `memprof run` shows what the program allocates, and nothing that the developer has not asked for.
RSpec.describe "memprof run, unless more is asked for" do
  include_context "with memprof run"

  before do
    file("Rakefile", <<~RUBY)
      require "rspec/core/rake_task"
      $task = Array.new(60) { |i| Rational(i, 7) }
      RSpec::Core::RakeTask.new(:spec) { |task| task.verbose = false }
    RUBY
    Dir.mkdir(File.join(directory, "spec"))
    file("spec/app_spec.rb", <<~RUBY)
      $boot = Array.new(300) { |i| Complex(i, 7) }
      RSpec.describe "it" do
        it("runs") { $kept = Array.new(9000) { Object.new } }
      end
    RUBY
  end

  def spec(*options) = run(*options, "--", RbConfig.ruby, "-S", "rake", "spec")

  # What stands in the tables.
  def rows(stdout) = stdout.lines.grep(/^ *[\d.,]+ (?:B|[KM]iB) /)

  it "shows the report of rspec, which rake runs" do
    stdout, stderr, = spec
    expect(stdout).to include("1 example, 0 failures")
    expect(stdout).to match(%r{ 9,000 +100 % +Object +spec/app_spec\.rb:3})
    expect(stdout).not_to include("Rakefile")
    expect(stderr).to match(/\Amemprof: other reports in .*:\n +\d+ .*rake.* report\.\d+\.txt\n\z/)
  end

  it "shows only the examples with --after-boot" do
    stdout, stderr, = spec("--after-boot")
    expect(stdout).to match(%r{ 9,000 +100 % +Object +spec/app_spec\.rb:3})
    expect(stdout).not_to include("Complex")
    expect(stderr).to match(/\Amemprof: other reports in .*:\n +\d+ .*rake.* report\.\d+\.txt\n\z/)
  end

  it "sums up in one line what the VM allocates for itself" do
    stdout = spec.stdout
    expect(stdout.scan(/^Excluded: [\d,]+ VM-internal objects .*, /).size).to eq(1)
    expect(rows(stdout).size).to eq(40)
    expect(rows(stdout)).not_to include(/<(?:iseq|callcache|constcache|env|svar|throw_data|ifunc)>/)
    stdout = spec("--internal", "--limit", "200").stdout
    expect(stdout).not_to include("Excluded:")
    expect(rows(stdout)).to include(/<iseq>/).and include(/<callcache>|<env>/)
  end

  it "says once why there is no report after boot" do
    file("empty.rb", "1")
    stdout, stderr, status = run("--after-boot", "empty.rb")
    expect([stdout, status.exitstatus]).to eq(["", 0])
    expect(stderr).to match(/\Amemprof: no report: there was no request, .*: \d+ \(empty\.rb\)\n\z/)
  end
end
