# frozen_string_literal: true

module Memprof
  class Web
    # A page about the process that the application runs in. There is none where `memprof web` shows files.
    class LivePage < Page
      def self.there?(heaps, _) = !heaps.live.nil?

      attr_reader :live

      def initialize(...)
        super
        @live = heaps.live || raise(NotFound, "no such page")
      end

      def breadcrumbs = [["Live", "/live"]]

      private

      # This page after something was done, and which worker did it: the next page may be another one's.
      def done(what) = "#{self.class.path}?#{URI.encode_www_form(done: what, pid: Process.pid)}"

      # What was done, as the address says, in one of these sentences.
      def sentence(sentences)
        done = text(:done) or return
        words = sentences.fetch(done.to_sym) { raise BadRequest, "invalid done #{done[0, 40].inspect}" }
        format(words, integer(:pid, Process.pid))
      end

      # A field of a form that is a whole number.
      def field(request, name, default, most)
        text = request.form.fetch(name, "").strip
        return default if text.empty?

        number = Integer(text, 10, exception: false)
        return number if number&.between?(1, most)

        raise BadRequest, "invalid #{name} #{text[0, 40].inspect}; expected a number from 1 to #{most}"
      end
    end
  end
end
