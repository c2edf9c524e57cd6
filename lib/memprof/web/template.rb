# frozen_string_literal: true

require "erb"
require_relative "html"

module Memprof
  class Web
    # Compiles a file of web/views into a method: ERB in which `<%= %>` always escapes everything but {Html}.
    # The code is evaluated in this scope, so constants of Memprof and Web need no prefix.
    module Template
      DIRECTORY = File.expand_path("../../../web/views", __dir__)
      LOCK = Mutex.new
      private_constant :LOCK

      # Collects a page.
      class Builder
        def initialize
          @text = +""
        end

        def raw(text) = @text << text

        def text(value) = @text << Html.escape(value)

        # What is rendered already.
        def so_far = @text

        def to_html = Html.new(@text)
      end

      # The pages that an object renders, the innermost last: what is above a table is looked up there.
      module Building
        private

        def builders = @builders ||= []

        def building
          builders << Builder.new
          yield(builders.last)
          builders.last.to_html
        ensure
          builders.pop
        end
      end

      class << self
        # Defines a method that renders the template.
        def define(owner, name)
          method = :"render_#{name.tr("/", "_")}"
          LOCK.synchronize { compile(owner, method, name) unless owner.method_defined?(method) }
          method
        end

        private

        def compile(owner, method, name)
          file = File.join(DIRECTORY, "#{name}.erb")
          owner.include(Building)
          owner.class_eval("def #{method}\n#{ruby(File.read(file, encoding: "UTF-8"))}\nend", file, -1)
        end

        def ruby(source)
          compiler = ERB::Compiler.new("<>")
          compiler.put_cmd = "_page.raw"
          compiler.insert_cmd = "_page.text"
          compiler.pre_cmd = ["building do |_page|"]
          compiler.post_cmd = ["end"]
          code, = compiler.compile(source)
          code
        end
      end
    end
  end
end
