# frozen_string_literal: true

module Memprof
  module Boot
    # What a measured process and the one that reads its numbers agree on.
    module Recorded
      # The mark of what memprof allocates itself, and that of the program's own first file.
      OWN = 1
      ROOT = 2
      # Environment variables: the directory that the numbers are written to, and the feature that ends the
      # boot.
      DIRECTORY = "MEMPROF_BOOT_DIRECTORY"
      UNTIL = "MEMPROF_BOOT_UNTIL"

      # A file that is loaded: its number is its mark.
      Row = Struct.new(:number, :parent, :name, :path, :kind, :late, :failed, :seconds, :rss, :empty)
    end
  end
end
