# frozen_string_literal: true

module Memprof
  module Boot
    # The contract between a measured process and the one that reads its numbers.
    module Recorded
      # The mark of memprof's own allocations, and that of the program's main file.
      OWN = 1
      ROOT = 2
      # Environment variables: the output directory of the numbers, and the feature that ends the boot.
      DIRECTORY = "MEMPROF_BOOT_DIRECTORY"
      UNTIL = "MEMPROF_BOOT_UNTIL"

      # A loaded file: its number is its mark.
      Row = Struct.new(:number, :parent, :name, :path, :kind, :late, :failed, :seconds, :rss, :empty)
    end
  end
end
