# frozen_string_literal: true

require "memprof/cli"

RSpec.describe "memprof completion" do
  def script(shell) = run_memprof("completion", shell).stdout

  # What bash proposes for the last of these words.
  def proposed(*words)
    code = "#{script("bash")}\nCOMP_WORDS=(#{words.join(" ")}) COMP_CWORD=#{words.size - 1}\n_memprof\n"
    run_command("bash", "-c", "#{code}echo \"${COMPREPLY[@]}\"").stdout.split
  end

  it "completes commands and their options in bash" do
    expect(proposed("memprof", "ch")).to eq(%w[check])
    expect(proposed("memprof", "run", "--after")).to eq(%w[--after-boot])
    expect(proposed("memprof", "check", "--max-")).to contain_exactly("--max-increase", "--max-retained")
    expect(proposed("memprof", "run", "app")).to eq([])
  end

  it "completes what options and commands take, if that is one of a few words, in all shells" do
    expect(proposed("memprof", "trace", "--by", "")).to eq(%w[action path status exception])
    expect(proposed("memprof", "run", "-f", "mark")).to eq(%w[markdown])
    expect(proposed("memprof", "help", "lea")).to eq(%w[leaks])
    expect(proposed("memprof", "completion", "")).to eq(%w[bash zsh fish])
    expect(proposed("memprof", "core", "-f", "")).to eq(%w[text json markdown])
    expect(script("zsh")).to match(/'--by\[.*\]:WHAT:\(action path status exception\)'/)
      .and match(/^    completion\) .*'1:word:\(bash zsh fish\)' ;;$/)
    expect(script("fish")).to match(/ -l by -r -f -a 'action path status exception' /)
  end

  it "knows every command, and what its options do, in zsh and fish" do
    zsh, fish = %w[zsh fish].map { |shell| script(shell) }
    Memprof::CLI::VERBS.each_key do |verb|
      expect(zsh).to match(/^    '#{verb}:.+'$/).and match(/^    #{verb}\) _arguments /)
      expect(fish).to match(/-a #{verb} -d '.+'$/)
    end
    expect(zsh)
      .to include("'--max-increase[limit for the increase of each total (default\\: 2%)]:PERCENT:_files'")
    expect(fish).to include("-l max-increase -r -d 'limit for the increase of each total (default: 2%)'")
  end

  %w[zsh fish].each do |shell|
    it "is what #{shell} understands" do
      skip "no #{shell} here" unless system("command -v #{shell} > /dev/null")

      expect(run_command(shell, "-n", input: script(shell)).stderr).to eq("")
    end
  end

  it "refuses other shells" do
    result = run_memprof("completion", "csh")
    expect(result.stderr).to eq("memprof: unknown shell \"csh\"; expected one of: bash, zsh, fish\n")
    expect(result.status.exitstatus).to eq(2)
  end
end
