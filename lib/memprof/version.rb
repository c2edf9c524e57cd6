# frozen_string_literal: true

module Memprof
  # Version of the gem, as in CHANGELOG.md.
  VERSION = "1.0.0.pre"
end
