# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof require`: the cost of a gem or a file.
    class Require < Boot
      SUMMARY = "requires gems or files and shows what each file costs"
      USAGE = "[OPTIONS] GEM|FILE..."
      DETAILS = <<~TEXT
        Requires each GEM or FILE in a fresh process, and prints the tree of `memprof
        boot`: the cost of each file, with the files that it requires in turn (Total)
        and without (Self). Under `bundle exec` the gems are those of the Gemfile.

        Files with less than 1 % of the total are left out; --min-size, or the
        environment variable CUT_OFF in MiB, sets another limit.

        Examples:
          memprof require json
          memprof require --min-size 0 ./lib/app.rb
          bundle exec memprof require --json mail > mail.json
      TEXT
      SCRIPT = File.expand_path("../boot/load_named.rb", __dir__)
      private_constant :SCRIPT

      def call(arguments)
        raise UsageError, "no gem or file given; see `memprof help require`" if arguments.empty?

        run([RbConfig.ruby, "-e", File.read(SCRIPT), *arguments])
      end
    end
  end
end
