# frozen_string_literal: true

module Memprof
  class Web
    # A page about the process that the application runs in; `memprof web`, which shows files, has none.
    class LivePage < Page
      def self.there?(heaps, _) = !heaps.live.nil?

      attr_reader :live

      def initialize(...)
        super
        @live = heaps.live || raise(NotFound, "no such page")
      end

      def breadcrumbs = [["Live", "/live"]]

      private

      # This page, with the action done and the worker that did it: another worker may serve the page.
      def done(what) = "#{self.class.path}?#{URI.encode_www_form(done: what, pid: Process.pid)}"

      # One of these sentences for the action done, as named by the address.
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
