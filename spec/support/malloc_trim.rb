# frozen_string_literal: true

# Returns free malloc memory to the system, if glibc's malloc_trim is available.
module MallocTrim
  FUNCTION = begin
    require "fiddle"
    Fiddle::Function.new(Fiddle.dlopen(nil)["malloc_trim"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT)
  rescue LoadError, Fiddle::DLError
    nil
  end
  private_constant :FUNCTION

  def self.call = FUNCTION&.call(0)
end
