# frozen_string_literal: true

require_relative "child_ruby"

# Runs the examples of crates, which write exports for other programs.
module CargoExamples
  # A directory of their own: in rake's, cargo would wait for a build in progress.
  TARGET = File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ChildRuby::ROOT), "examples")

  def self.cargo?
    system("cargo", "--version", out: File::NULL, err: File::NULL)
  end

  def run_example(package, name, *words, features: [])
    command = ["cargo", "run", "--quiet", "--package", package]
    command.push("--features", features.join(",")) unless features.empty?
    command.push("--example", name, "--", *words)
    # Compiling takes far more time than these need.
    environment = { "CARGO_TARGET_DIR" => TARGET, "CARGO_PROFILE_DEV_OPT_LEVEL" => "0",
                    "RUBY" => RbConfig.ruby }
    result = run_command(*command, env: environment, timeout: 900, chdir: ChildRuby::ROOT)
    expect(result.status).to be_success, result.stderr
  end
end
