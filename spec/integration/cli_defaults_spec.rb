# frozen_string_literal: true

require "memprof/cli"
require "tmpdir"

RSpec.describe "Defaults of the command" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def run(*arguments, env: {})
    run_memprof("run", *arguments, "--", RbConfig.ruby, "-e", 'x = Array.new(50) { "a" * 50 }', env: env)
  end

  def configure(text) = File.write(".memprof.yml", text)

  it "are those of .memprof.yml, unless the command line says otherwise" do
    configure("run:\n  format: json\n  ignore_files: /gems/\n  internal: true\n  peak: false\n")
    expect(JSON.parse(run.stdout)).to include("format" => "memprof-report")
    expect(run("--format", "text").stdout).to include("Allocated")
    expect(run(env: { "MEMPROF_CONFIG" => "" }).stdout).to include("Allocated")
    File.rename(".memprof.yml", "other.yml")
    expect(run.stdout).to include("Allocated")
    expect(JSON.parse(run(env: { "MEMPROF_CONFIG" => "other.yml" }).stdout)).to be_a(Hash)
  end

  it "may be options that another form of the command has no use for" do
    configure("malloc:\n  limit: 1\n  min: 1MB\n")
    two_lines = "A = 9.to_s * 9000\nB = 9.to_s * 9000"
    run_memprof("run", "--malloc", "-o", "app.malloc", "--", RbConfig.ruby, "-e", two_lines)
    shown = run_memprof("malloc", "app.malloc")
    expect([shown.stderr, shown.stdout.lines.grep(/^\.\.\. \d+ more/).size]).to match(["", (be >= 1)])
  end

  it "are refused in a sentence when they are wrong" do
    {
      "run:\n  stakc: 1\n" => "memprof run has no option --stakc (did you mean --stack?)",
      "rnu:\n  stack: 1\n" => 'unknown command "rnu" (did you mean run?)',
      "run: 7\n" => "run is not a table of options",
      "run:\n  stack: none\n" => 'invalid --stack "none"; expected a number of at least 1',
      "run:\n  stack: {a: 1}\n" => "--stack of run is neither a text nor a number",
      "- run\n" => "it is not a table of commands"
    }.each do |text, message|
      configure(text)
      result = run
      expect([result.stderr, result.stdout]).to eq(["memprof: .memprof.yml: #{message}\n", ""])
    end
    configure("run: [")
    expect(run.stderr).to match(/\Amemprof: \.memprof\.yml: [^(].* line \d+ column \d+\n\z/)
    expect(run(env: { "MEMPROF_CONFIG" => "none.yml" }).stderr)
      .to eq("memprof: cannot read none.yml: No such file or directory\n")
  end
end

RSpec.describe "memprof help --man" do
  it "has each command with its options, and no line that man warns of" do
    page = run_memprof("help", "--man").stdout
    Memprof::CLI::VERBS.each_key { |verb| expect(page).to include("\n.SS memprof #{verb} ") }
    expect(page).to include(".TP\n\\fB\\-\\-after\\-boot\\fR\nstart tracking at the first request")
    skip "needs groff" unless system("which groff", out: File::NULL, err: File::NULL)

    result = run_command("groff", "-man", "-Tutf8", "-ww", "-z", input: page)
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
  end
end
