# frozen_string_literal: true

require_relative "flag"

module Memprof
  module CLI
    # The options of all commands, in the order of their help. Help, the manual page, completions and
    # suggestions are made of them. An option has one meaning; what it does is said for each command.
    module Flags
      def self.flag(...) = Flag.new(...)

      # @return [Array<Flag>] the options of a command
      def self.of(verb) = TABLE.select { |flag| flag.verbs.include?(verb) }

      def self.bytes(text) = ByteSize.read(text)

      # Seconds, such as 90, 90s, 10m or 2h; nil if it is something else, or more than a week.
      def self.seconds(text)
        number, unit = text.match(/\A(\d+(?:\.\d+)?)([smh]?)\z/)&.captures
        seconds = number.to_r * { "m" => 60, "h" => 3600 }.fetch(unit, 1)
        return unless seconds.positive? && seconds <= 7 * 24 * 3600

        seconds.denominator == 1 ? seconds.to_i : seconds.to_f
      end

      def self.number(text, range)
        number = Float(text)
        number if range.cover?(number)
      end

      # An error about a secret does not show it.
      def self.secret(text)
        text.length < 8 ? raise(UsageError, "invalid --token; expected at least 8 characters") : text
      end

      private_class_method :flag, :bytes, :seconds, :number, :secret

      ON = Flag::Switch.new
      TEXT = Flag::Reader.new(&:itself)
      COUNT = Flag::Count.new
      FRAMES = Flag::Count.new(most: 2048) # as Session::MAX_STACK
      SIZE = Flag::Reader.new("a size between 1 B and 4 GiB, such as 512KiB") do |text|
        bytes(text).then { |size| size if size.between?(1, (1 << 32) - 1) }
      end
      LARGE_SIZE = Flag::Reader.new("a size such as 500MB or 2GiB") { |text| bytes(text).nonzero? }
      TIME = Flag::Reader.new("a time above 0 and of at most a week, such as 90s, 10m or 2h") do |text|
        seconds(text)
      end
      MOMENT = Flag::Reader.new("a number of seconds") { |text| number(text, 0..Float::MAX) }
      REGEXP = Flag::Reader.new do |text|
        Regexp.new(text)
      rescue RegexpError => e
        raise Flag::Reader::Expected, "a regular expression (#{e.message})"
      end
      PERCENTAGE = Flag::Reader.new("a number from 0 to 100") { |text| number(text, 0..100) }
      SHARE = Flag::Reader.new("a number above 0 and at most 100") { |text| number(text, 0..100)&.nonzero? }
      INCREASE = Flag::Reader.new("a percentage, such as 2%") { |text| Memprof::Check::Limits.percent(text) }
      RETAINED = Flag::Reader.new("a number of objects, or a size, such as 10MiB") do |text|
        Memprof::Check::Limits.retained(text)
      end
      SIGNAL = Flag::Reader.new("one that can be caught, such as URG, USR1 or USR2") do |text|
        Run.signal(text)
      end
      PORT = Flag::Reader.new("a number from 0 to 65535") do |text|
        number = Integer(text, exception: false)
        number if number&.between?(0, 65_535)
      end
      STEP = Flag::Step.new

      def self.words(*words, &of_another) = Flag::Words.new(&(of_another || -> { words }))
      private_class_method :words

      # The formats of answers that have rows.
      FORMATS = %i[text json csv markdown].freeze
      COMPARISONS = [*FORMATS, :github, :junit].freeze
      HEAPS = "memory leaks top histogram query show path tree diff export stats dups slots subset console"
      LISTS = "stack memory leaks top histogram query show path tree trace stats dups slots subset"
      MEASURES = words(:allocated_bytes, :allocated_objects, :retained_bytes, :retained_objects)
      CONTENTS = words { Memprof::Dump::Options::VALUES }
      private_constant :ON, :TEXT, :COUNT, :FRAMES, :LARGE_SIZE, :TIME, :MOMENT, :REGEXP, :PERCENTAGE, :SHARE,
        :INCREASE, :RETAINED, :SIGNAL, :PORT, :STEP, :COMPARISONS, :MEASURES, :CONTENTS

      TABLE = [
        # A process.
        flag("-p, --pid PID", Flag::Count.new(most: nil),
          "attach dump stack memory leaks start stop stats" => "the same as the argument PID"),
        flag("--workers", ON, "memory" => "show a row for PID and each process forked from it"),
        flag("--children", ON, "dump" => "dump the processes that PID has forked, not PID itself"),
        flag("--track", ON, "attach" => "show objects allocated meanwhile and still live, by line"),
        flag("--malloc", ON,
          "attach" => "show live memory from malloc, by line",
          "run" => "record malloc; see below"),
        flag("--eval FILE", TEXT, "attach" => "run the Ruby code in FILE there and print its value"),
        flag("--for TIME", TIME,
          "leaks" => ["with PID: time from the first dump to the last, such as 90s", "60s"],
          "attach" => ["with --track or --malloc: time to watch, such as 90s", "10s"], was: "--duration"),
        flag("--attach", ON,
          "leaks" => "with PID: load memprof into it meanwhile, to get allocation lines; tracks one object " \
                     "in 8, and malloc"),
        flag("--force-copy", ON,
          "leaks" => "with PID: copy it even if that might exceed the limit of its cgroup", was: "--force"),
        flag("--timeout SECONDS", COUNT,
          "dump" => ["how long to wait for the dump", 300],
          "stack" => ["how long to wait for the answer", 30],
          "attach" => ["how long to wait for the process to begin", 30], was: "--seconds"),

        # A command.
        flag("--baseline FILE", TEXT, "check" => "report or baseline to compare with"),
        flag("--update", ON, "check" => "write the baseline instead of comparing"),
        flag("--runs N", COUNT, "check" => ["run the command N times", 2]),
        flag("--max-retained N", RETAINED,
          "check" => "limit for retained memory: a number of objects, or a size such as 10MiB"),
        flag("--max-increase PERCENT", INCREASE,
          "check" => ["limit for the increase of each total", "2%"],
          "diff" => "reports: exit with 1 if a total increased by more"),
        flag("--until FEATURE", TEXT, "boot require" => "the boot ends when this feature is loaded"),
        flag("--signal SIGNAL", SIGNAL, "run" => "also write a report on this signal (default: none)"),
        flag("--after-boot", ON,
          "run" => "start tracking at the first request, example, test, job or task, or at Memprof.booted"),
        flag("--gc", ON, "track" => "run a full GC first, so that only retained objects show"),
        flag("--peak", ON,
          "run" => "also find when memory use peaked, and which lines had allocated it"),
        flag("--sample N", COUNT, "check track start" => ["track one object in N, and scale up", 1]),
        flag("--sample N", Flag::Sample.new,
          "run" => ["track one object in N, and scale up", 1],
          "attach" => "with --track: track one object in N, and scale up"),
        flag("--sample-bytes SIZE", SIZE,
          "run" => "with --malloc: record one block in SIZE bytes, such as 512KiB",
          "attach" => "with --malloc: record one block in SIZE bytes, such as 512KiB"),
        flag("--sample-bytes SIZE", SIZE,
          "malloc" => "with a command: record one block in SIZE bytes, such as 512KiB", was: "--sample"),
        flag("--stack N", FRAMES,
          "run" => "record N calling frames per object (default: 1; 64 with --malloc and formats with " \
                   "call stacks)",
          "start" => ["record N calling frames per object", 1]),
        flag("--stack N", Flag::Count.new(most: 512),
          "attach" => ["with --output: record N calling frames", 64]),
        flag("--native", ON,
          "run" => "with --malloc: include native frames",
          "attach" => "with --output: include native frames"),
        flag("--addresses", ON, "run" => "with --malloc: record addresses of blocks, too"),
        flag("--class CLASS", Flag::ClassName.new,
          "run" => "only objects of this class (may be repeated)"),
        flag("--trace", ON, "run" => "report what each process does as a whole; see below"),
        flag("--internal", ON,
          "run" => "list objects that the VM allocates for itself (<iseq>, <callcache> ...) instead of " \
                   "only adding them up",
          "check" => "include internal objects of the VM",
          "diff" => "reports: include internal objects of the VM"),
        flag("--no-internal", ON, "run" => "leave these objects out of the totals, too"),
        flag("--ignore-files RE", REGEXP, "run" => "leave out lines of files whose path matches"),
        flag("--allow-files RE", REGEXP, "run" => "leave out lines of files whose path does not match"),

        # A recording of malloc.
        flag("--tree", ON, "malloc" => "show a recording as a call tree"),
        flag("--callers", ON,
          "malloc" => "show a recording as a tree from allocating lines to their callers"),
        flag("--functions", ON,
          "malloc" => "show functions of a recording: what each allocated, with and without callees"),
        flag("--function NAME", TEXT,
          "malloc" => "show a function of a recording: its callers and callees"),
        flag("--from SECONDS", MOMENT, "malloc" => "count calls and look for the peak only from then on"),
        flag("--to SECONDS", MOMENT, "malloc" => "ignore what was recorded later"),
        flag("--suppressions FILE", TEXT,
          "malloc" => "leave out leaks that FILE lists in LeakSanitizer's format: leak:libpq.so"),
        flag("--recording FILE", TEXT,
          "core" => "a recording of malloc with addresses: show which line allocated each block"),

        # Steps of `memprof subset`.
        flag("--class CLASS", STEP, "subset" => "objects of this class, or /REGEXP/"),
        flag("--type TYPE", STEP, "subset" => "objects of this type: STRING, HASH, ..."),
        flag("--where QUERY", TEXT,
          "top histogram path diff export dups" => "only objects that match QUERY, such as 'class = Order'"),
        flag("--where QUERY", STEP, "subset" => "objects that match a query"),
        flag("--subgraph-of ADDRESS", STEP, "subset" => "what it references (see --depth)"),
        flag("--root-of ADDRESS", STEP, "subset" => "what references it, transitively"),
        flag("--roots-of QUERY", STEP, "subset" => "a shortest path from a root to each"),
        flag("--parents-of QUERY", STEP, "subset" => "what references these (see --min-references)"),
        flag("--common-ancestors QUERY", STEP, "subset" => "what references all of these"),
        flag("--reachable-from QUERY", STEP, "subset" => "what these reference, transitively"),
        flag("--remove-node ADDRESS", STEP, "subset" => "what remains reachable without it"),
        flag("--without QUERY", STEP, "subset" => "all but these"),
        flag("--collapse QUERY", STEP, "subset" => "all but these; references bypass them"),
        flag("--cleanup", STEP,
          "subset" => "without weak references; sets, arrays, hashes and internal objects collapsed"),
        flag("--small N", STEP, "subset" => "without components of N objects or fewer"),
        flag("--roots", STEP, "subset" => "objects without incoming references"),
        flag("--random RATIO", STEP, "subset" => "keep each object with this probability", was: "--sample"),
        flag("--diff LATER", STEP, "subset" => "objects that only the dump LATER has"),
        flag("--class-references", STEP, "subset" => "add references to classes"),
        flag("--valid", STEP, "subset" => "drop references to missing objects; list their addresses"),
        flag("--out-degree", ON, "subset" => "list objects by number of references"),

        # Which rows there are, and in which order.
        flag("--by WHAT", words { Histogram::BY },
          "histogram" => ["class, line, gem, ...: see below", :class]),
        flag("--by WHAT", words(:object, :class),
          "tree" => "object (default), or class to merge the objects of a class"),
        flag("--by WHAT", words { Diff::BY | Comparing::BY },
          "diff" => "dumps: class, type, site, file; reports: only line, class, gem"),
        flag("--by WHAT", words { Comparing::BY }, "check" => "show only the table by line, class or gem"),
        flag("--by WHAT", words(:action, :path, :status, :exception), "trace" => [nil, :action]),
        flag("--then WHAT", words { Histogram::BY - Columns.groups_in(:tree) },
          "histogram" => "split each group by this"),
        flag("--procs", ON, "top" => "list procs by block, with what they captured"),
        flag("--collections", ON, "dups" => "show collections instead of strings"),
        flag("--exact", ON, "histogram" => "compute the exact retained size of each group (slow)"),
        flag("--sort WHAT", words(:retained, :size, :length, :references, :referrers, :depth, :address),
          "top query" => nil),
        flag("--sort WHAT", words(:retained, :size, :count, :name), "histogram" => nil),
        flag("--sort WHAT", words(:length, :retained, :size, :unused),
          "dups" => "collections: length (default), retained, size, unused"),
        flag("--sort WHAT", words { Diff::SORT | Memprof::Check::Comparison::MEASURES },
          "diff" => "dumps: size, count, retained, new, survived; reports: allocated_bytes, " \
                    "allocated_objects, retained_bytes, retained_objects"),
        flag("--sort WHAT", MEASURES, "check" => [nil, :allocated_bytes]),
        flag("--sort WHAT", TEXT, "trace" => ["sort by this cost, highest first", "time"]),
        flag("--value WHAT", MEASURES,
          "run" => "value in collapsed, speedscope and firefox: allocated_bytes (default), " \
                   "allocated_objects, retained_bytes, retained_objects"),
        flag("--value WHAT", words(:peak, :leaked, :allocated),
          "malloc" => ["bytes in trees and in formats with stacks: peak, leaked or allocated", :peak]),
        flag("--fail", ON, "leaks" => "exit with 1 if something grows, with 2 if that is unknown"),
        flag("--own PATTERN", TEXT, "leaks" => "regexp for the paths of the application's files"),
        flag("--threshold PERCENT", SHARE,
          "leaks" => ["with one dump: hide findings with a smaller share of it", 1]),
        flag("--nearly-empty PERCENT", PERCENTAGE,
          "slots" => ["a page is nearly empty if at most PERCENT of its slots are used", 10]),
        flag("--min-size SIZE", Flag::Reader.new("a size, such as 512KiB") { |text| bytes(text) },
          "boot require" => "hide files with a total below SIZE, such as 1MB", was: "--min"),
        flag("--min-size SIZE", SIZE,
          "malloc" => "with a command: hide lines that allocated SIZE or less, such as 1MB",
          "tree" => ["hide objects that retain less than SIZE, such as 1MB", "1B"], was: "--min"),
        flag("--min-copies N", COUNT, "dups" => ["only strings with at least N copies", 2], was: "--min"),
        flag("--min-references N", COUNT,
          "subset" => "more than N references (--parents-of), N or more (--out-degree)", was: "--min"),
        flag("--limit N", COUNT,
          "run" => "first N entries of each table (default: 20; for json and memory_profiler 50)",
          "check" => ["the first N of each table", 20],
          "boot require" => ["the first N gems and files", 10],
          "malloc" => ["the first N rows of each table; for a recording, 10 lines", 20],
          "attach" => "the first N lines (default: all; with --malloc 20)",
          "leaks" => ["the first N findings", 3],
          "top query" => ["the first N objects", 20],
          "histogram" => ["the first N groups", 20],
          "show diff" => ["the first N of each list", 20],
          "path" => ["with --where: N branches per node", 8],
          "tree" => ["the first N of each branch", 10],
          "trace" => ["the first N groups and requests", 10],
          "export" => "at most N objects (default: depends on FORMAT)",
          "track" => "the first N lines (default: all)",
          "stats" => "the first N classes (default: 5); with PID N lines (default: all)",
          "dups" => ["the first N strings or collections", 20],
          "subset" => ["the first N rows", 20]),
        flag("--then-limit N", COUNT, "histogram" => "the first N in each group (default: 3; in a tree 10)"),
        flag("--offset N", COUNT, "top query" => "skip the first N objects"),
        flag("--depth N", COUNT,
          "histogram" => ["levels of a tree", 3],
          "tree" => ["levels", 3],
          "subset" => "references to follow, for --subgraph-of"),

        # How the answer is written.
        flag("-f, --format FORMAT", words { Autorun::Settings::EXTENSIONS.keys },
          "run" => ["text, json, markdown, memory_profiler; with call stacks: collapsed, speedscope, " \
                    "firefox, pprof", :text]),
        flag("-f, --format FORMAT", words(*COMPARISONS), "check" => [nil, :text]),
        flag("-f, --format FORMAT", words(:text, :json, :markdown, :collapsed, :speedscope),
          "boot require" => ["text, json, markdown; as flame graph: collapsed, speedscope", :text]),
        flag("-f, --format FORMAT",
          words(:text, :json, :markdown, :heaptrack, :massif, :collapsed, :speedscope, :firefox, :pprof),
          "malloc" => ["a recording as text, json, markdown, heaptrack, massif, collapsed, speedscope, " \
                       "firefox or pprof", :text]),
        flag("-f, --format FORMAT", words { Memprof::Dump::Options::FORMATS },
          "dump" => "memprof (JSON lines), objspace (like ObjectSpace.dump_all), binary, heap_dump " \
                    "(default: by --output, else the process decides)",
          "convert" => "memprof, objspace, binary, heap_dump (default: by the extension of OUT)"),
        flag("-f, --format FORMAT", words(*FORMATS), LISTS => [nil, :text]),
        flag("-f, --format FORMAT", words(*COMPARISONS),
          "diff" => ["text, json, csv, markdown; reports: github, junit", :text]),
        flag("-f, --format FORMAT", words { [*Export::FORMATS.keys, :report] },
          "export" => "see below (default: by the extension of OUT)"),
        flag("-f, --format FORMAT", words(:text, :json, :markdown), "core" => [nil, :text]),
        flag("--json", Flag::Switch.new(:format, :json),
          "run check boot require malloc diff core #{LISTS}" => "the same as --format json"),
        flag("--markdown", Flag::Switch.new(:format, :markdown),
          "run check boot require malloc diff core #{LISTS}" => "the same as --format markdown"),
        flag("--contents WHAT", CONTENTS,
          "dump" => "contents of strings etc.: full, truncate, hash, length, none (default: the process " \
                    "decides)",
          "leaks" => "with PID: contents of strings etc. in the dumps that it leaves: full, truncate, " \
                     "hash, length, none (default: none)",
          "convert" => ["contents of strings etc.: full, truncate, hash, length, none", :full],
          was: "--values"),
        flag("--scale-bytes", ON, "run" => "with memory_profiler: print 16.66 kB, not 16660"),
        flag("--color WHEN", words(:auto, :always, :never), "run" => [nil, :auto]),
        flag("-o, --output FILE", TEXT,
          "run" => "write to files; see below (default: stdout)",
          "dump" => "output file (default: named after the application)"),
        flag("-o, --output FILE", Flag::Path.new,
          "malloc" => "append to a file (default: a table on stderr); with a recording, write to it",
          "attach" => "with --malloc: write a recording to FILE",
          "boot require check track diff core #{LISTS}" => ["write to a file", "stdout"]),
        flag("--force", ON, "export convert subset" => "replace OUT if it exists"),
        flag("--no-pager", ON, "diff core #{LISTS}" => "do not page long output"),

        # How a dump is read.
        flag("--ignore-stack-roots", ON,
          "web #{HEAPS}" => "ignore references found only by conservative stack scanning"),
        flag("--no-index", ON, "web #{HEAPS}" => "do not write an index file beside FILE"),
        flag("--blocks", ON,
          "convert #{HEAPS}" => "with a core file: include malloc blocks as objects",
          "dump" => "include malloc blocks as objects"),

        # The server for language models.
        flag("--allow", ON,
          "mcp" => "also inspect running processes (verdict, dump, attach) and run commands"),
        flag("--show-contents", ON,
          "mcp" => "show contents of strings when a call asks for them",
          "export" => "report: show contents of strings", was: "--values"),

        # The page.
        flag("--bind ADDRESS", TEXT, "web" => ["listen on this address", "127.0.0.1"]),
        flag("--port N", PORT,
          "web" => "listen on this port (default: a free one)"),
        flag("--token TOKEN", Flag::Reader.new { |token| secret(token) },
          "web" => "use your own token, of at least 8 characters"),
        flag("--host NAME", TEXT, "web" => "also answer to this host name"),
        flag("--library [DIR]", Flag::Reader.new { |directory| directory || true },
          "web" => "show the dumps of a directory, and accept uploads"),
        flag("--max-size SIZE", LARGE_SIZE, "web" => "limit of the library, such as 20GiB"),
        flag("--max-upload SIZE", LARGE_SIZE, "web" => ["limit of one dump", "2GiB"]),
        flag("--key KEY", TEXT,
          "web" => "upload key required from clients, at least 16 characters (or MEMPROF_KEY; default: " \
                   "generated once)"),
        flag("--max-open N", Flag::Count.new(least: 3), "web" => ["keep at most N dumps open, 3 or more", 8]),
        flag("--no-open", ON, "web" => "do not start a browser"),

        flag("--man", ON, "help" => "all commands as a manual page: memprof help --man | man -l -"),
        flag("-h, --help", ON, VERBS.keys.join(" ") => "show this help")
      ].freeze
    end
  end
end
