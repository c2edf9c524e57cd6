# frozen_string_literal: true

require_relative "compat/filter"
