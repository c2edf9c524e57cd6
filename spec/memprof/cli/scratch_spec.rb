# frozen_string_literal: true

require "memprof/cli"
require "memprof/cli/scratch"

RSpec.describe Memprof::CLI::Scratch do
  it "gives a directory that is gone after the block, whatever it has" do
    path = described_class.directory do |directory|
      File.write(File.join(directory, "file"), "")
      directory
    end
    expect(File.exist?(path)).to be(false)
  end

  it "removes it also if Ctrl-C comes meanwhile" do
    path = nil
    removals = 0
    allow(FileUtils).to receive(:remove_entry).and_wrap_original do |remove, *arguments|
      raise Interrupt if (removals += 1) == 1

      remove.call(*arguments)
    end
    expect { described_class.directory { |directory| path = directory } }.to raise_error(Interrupt)
    expect([path && File.exist?(path)]).to eq([false])
  end
end
