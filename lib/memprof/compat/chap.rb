# frozen_string_literal: true

module Memprof
  module Compat
    # chap's language, in which `memprof core` answers questions about blocks of malloc: requests in its
    # words, scripts of them, and answers in its wording.
    module Chap
      autoload :Answers, "#{__dir__}/chap/answers"
      autoload :Request, "#{__dir__}/chap/request"
      autoload :Script, "#{__dir__}/chap/script"

      HELP = <<~TEXT.chomp
        Verbs: count, summarize, list, enumerate, show, describe, explain; dump ADDRESS
        SIZE. Sets: allocations, used, free, threadcached, anchored, anchorpoints,
        leaked, unreferenced, garbage, owned, native; stack-, register-, static-,
        external- and threadonly- before anchored and anchorpoints; arenas, objects,
        stacks, modules, writable, readonly, rxonly, inaccessible; allocation, incoming,
        exactincoming, outgoing, freeoutgoing ADDRESS; chain ADDRESS OFFSET;
        reversechain ADDRESS SOURCE-OFFSET TARGET-OFFSET.

        A set may be followed by a signature, a pattern (%RubyString), - or ?, and by
        /minsize, /maxsize, /size, /minincoming, /maxincoming, /minoutgoing,
        /maxoutgoing, /minfreeoutgoing, /maxfreeoutgoing [SIGNATURE=]N, /skip,
        /showUpTo N, /sortby bytes|counts, /showAscii false, and extended by /extend
        RULE: '->' adds what its blocks reference, '~>' what is leaked of that, '<-'
        what references them; /commentExtensions true shows what added each block.
        Numbers are hexadecimal as in chap, only those of references are decimal. With
        - in place of a verb, memprof reads commands from stdin, one per line; after
        `redirect on` each answer goes to a file.
      TEXT

      EXAMPLES = <<~TEXT.chomp.gsub(/^/, "  ")
        memprof core 4711 summarize leaked
        memprof core core.4711 list used %RubyString /minsize 1MiB
        memprof core core.4711 explain 55d90dacc010
        memprof core core.4711 summarize unreferenced /extend '~>'
        memprof core core.4711 summarize leaked --recording app.malloc
        memprof core core.4711 - < script.chap
      TEXT

      # The requests in the words of a command line, each with the file for its answer, if any. `-` reads
      # them from stdin.
      def self.requests(words, file)
        words == ["-"] ? Script.new($stdin, file) : [[Request.new(words), nil]]
      end
    end
  end
end
