# frozen_string_literal: true

require "memprof/agent/settings"
require "rails/generators/base"

module Memprof
  # Generators for Rails applications.
  #
  # @api private
  module Generators
    # `rails generate memprof:install` writes an initializer that names all settings.
    #
    # @api private
    class InstallGenerator < ::Rails::Generators::Base
      source_root File.expand_path("templates", __dir__)
      desc "Writes config/initializers/memprof.rb, in which every setting is a comment."

      def create_initializer
        template("memprof.rb.tt", "config/initializers/memprof.rb")
      end

      private

      # A sentence as lines of a comment.
      def lines(sentence)
        text = "#{sentence[0].upcase}#{sentence[1..]}."
        text.scan(/\S(?:.{0,106}\S)?(?=\s|\z)/)
      end
    end
  end
end
