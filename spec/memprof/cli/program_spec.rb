# frozen_string_literal: true

require "memprof/cli"
require "tmpdir"

RSpec.describe Memprof::CLI::Program do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  it "knows what is run by Ruby: Ruby itself, and scripts, with or without a directory" do
    File.write("app.rb", "puts 1\n")
    File.write("task", "#!/usr/bin/env ruby\n")
    File.write("shell", "#!/bin/sh\n")
    commands = [RbConfig.ruby, "app.rb", "./app.rb", "task", "./task", "./shell", "shell", "true", "missing"]
    expect(commands.select { |command| described_class.ruby?(command) }).to eq(commands.first(5))
  end
end
