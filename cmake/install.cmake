# What `cmake --install` puts into a prefix: headers, both libraries, the CMake package, largo.pc.
# Nothing in it names a path of this machine; the prefix may be moved afterwards.
include(CMakePackageConfigHelpers)
set(largo_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/largo)

# The archive has an export of its own: only who links it needs to find OpenMP.
install(FILES include/largo.h include/largo_dlpack.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS largo_shared EXPORT largoTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS largo_static EXPORT largoStaticTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT largoTargets NAMESPACE largo:: DESTINATION ${largo_cmake_dir})
install(EXPORT largoStaticTargets NAMESPACE largo:: DESTINATION ${largo_cmake_dir})

# Before 1.0 a minor version may change the interface.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatibility SameMinorVersion)
endif()
configure_package_config_file(cmake/largoConfig.cmake.in largoConfig.cmake
                              INSTALL_DESTINATION ${largo_cmake_dir})
write_basic_package_version_file(largoConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/largoConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/largoConfigVersion.cmake
        DESTINATION ${largo_cmake_dir})

# pkg-config: folders relative to the file itself, unless somebody configured absolute ones.
set(largo_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(largo_pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH up "/${largo_pc_dir}" "/")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(largo_pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(kind LIB INCLUDE)
    set(largo_pc_${kind} ${CMAKE_INSTALL_${kind}DIR})
    if(NOT IS_ABSOLUTE "${largo_pc_${kind}}")
        set(largo_pc_${kind} "\${prefix}/${largo_pc_${kind}}")
    endif()
endforeach()

# What the archive needs: the OpenMP run-time library of this compiler, where it is not found anyway.
set(largo_pc_private "")
foreach(name IN LISTS OpenMP_C_LIB_NAMES)
    get_filename_component(folder "${OpenMP_${name}_LIBRARY}" DIRECTORY)
    if(NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
        string(APPEND largo_pc_private "-L${folder} ")
    endif()
    string(APPEND largo_pc_private "-l${name} ")
endforeach()
string(APPEND largo_pc_private "-lm")
configure_file(cmake/largo.pc.in largo.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/largo.pc DESTINATION ${largo_pc_dir})
